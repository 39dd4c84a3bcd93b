"""Clients that live longer than a task."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from strandline.client.config import ClientConfig
from strandline.spark import connections
from strandline.spark.options.kafka import Cluster


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """What a worker never collects again, other tests do."""
    yield
    gc.unfreeze()


def cluster(client_id: str = "a") -> Cluster:
    return Cluster(bootstrap_servers=("127.0.0.1:1",), config=ClientConfig(client_id=client_id))


def test_equal_settings_share_a_client_and_others_do_not():
    assert connections.client_of(cluster()) is connections.client_of(cluster())
    assert connections.client_of(cluster()) is not connections.client_of(cluster("b"))


def test_a_process_that_was_forked_makes_its_own(monkeypatch):
    parents = connections.client_of(cluster())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert connections.client_of(cluster()) is not parents
