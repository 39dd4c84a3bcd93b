"""Clients that live longer than a task."""

from __future__ import annotations

import os

import pytest

from strandline.client.config import ClientConfig
from strandline.spark import connections
from strandline.spark.options.kafka import ClusterOptions


def cluster(client_id: str = "a") -> ClusterOptions:
    return ClusterOptions(bootstrap_servers=("127.0.0.1:1",), config=ClientConfig(client_id=client_id))


def test_equal_settings_share_a_client_and_others_do_not() -> None:
    assert connections.client_of(cluster()) is connections.client_of(cluster())
    assert connections.client_of(cluster()) is not connections.client_of(cluster("b"))


def test_a_process_that_was_forked_makes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = connections.client_of(cluster())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert connections.client_of(cluster()) is not parents
