"""Addresses to bind and to tell."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from strandline.config.errors import ConfigError
from strandline.config.listeners import ListenerConfig, build_listeners, is_loopback, parse_endpoint, parse_protocol_map

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", "SASL_SSL": "SASL_SSL"}


def build(
    bound: Sequence[str], advertised: Sequence[str] | None = None, *, insecure: bool = False
) -> tuple[list[ListenerConfig], list[str]]:
    return build_listeners(
        bound, advertised, PROTOCOLS, ("CONTROLLER",), lambda name: None, "node.example", insecure=insecure
    )


def test_an_endpoint_has_a_name_a_host_and_a_port() -> None:
    assert parse_endpoint("internal://[::1]:9092") == ("INTERNAL", "::1", 9092)
    assert parse_endpoint("PLAINTEXT://:0") == ("PLAINTEXT", "", 0)


@pytest.mark.parametrize(
    "text", ["127.0.0.1:9092", "PLAINTEXT://host", "PLAINTEXT://host:99999", "PLAINTEXT://a b:1", ""]
)
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"write it as NAME://host:port"):
        parse_endpoint(text)


def test_the_protocol_map_knows_kafkas_protocols() -> None:
    assert parse_protocol_map("a:plaintext, B:SSL") == {"A": "PLAINTEXT", "B": "SSL"}
    with pytest.raises(ConfigError, match=r"'B:TLS' is not NAME:PROTOCOL"):
        parse_protocol_map("B:TLS")


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("127.8.0.1", True), ("::1", True), ("", False), ("0.0.0.0", False), ("db1", False)],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.5", "broker-1", "[::]"])
def test_an_open_plaintext_listener_is_refused(host: str) -> None:
    with pytest.raises(
        ConfigError, match=r"open to anyone who can reach it: use SSL, bind 127.0.0.1, or give --insecure"
    ):
        build([f"PLAINTEXT://{host}:9092"], ["PLAINTEXT://broker-1:9092"])
    listeners, warnings = build([f"PLAINTEXT://{host}:9092"], ["PLAINTEXT://broker-1:9092"], insecure=True)
    assert (listeners[0].host, warnings) == (host.strip("[]"), [])


def test_no_host_is_loopback_when_clients_are_told_no_other() -> None:
    listeners, warnings = build(["PLAINTEXT://:9092"], ["PLAINTEXT://localhost:9092"])
    assert (listeners[0].host, listeners[0].advertised_host) == ("127.0.0.1", "localhost")
    assert "bound to 127.0.0.1 only" in warnings[0]
    assert build(["PLAINTEXT://:9092"])[0][0].advertised_host == "127.0.0.1"


def test_no_host_and_a_public_name_is_an_open_listener() -> None:
    with pytest.raises(ConfigError, match=r"PLAINTEXT on every interface"):
        build(["PLAINTEXT://:9092"], ["PLAINTEXT://broker-1:9092"])


def test_insecure_binds_every_interface_and_tells_the_host_name() -> None:
    listeners, warnings = build(["PLAINTEXT://:9092"], insecure=True)
    assert (listeners[0].host, listeners[0].advertised_host, warnings) == ("", "node.example", [])


def test_clients_are_never_told_the_wildcard() -> None:
    with pytest.raises(ConfigError, match=r"give advertised.listeners=PLAINTEXT://<a host they can reach>:9092"):
        build(["PLAINTEXT://0.0.0.0:9092"], insecure=True)


def test_controller_listeners_are_marked() -> None:
    listeners, _ = build(["PLAINTEXT://127.0.0.1:1", "CONTROLLER://127.0.0.1:2"])
    assert [listener.controller for listener in listeners] == [False, True]


@pytest.mark.parametrize(
    ("bound", "advertised", "why"),
    [
        (["PLAINTEXT://127.0.0.1:1", "PLAINTEXT://127.0.0.1:2"], None, "different name"),
        (["PLAINTEXT://127.0.0.1:1", "CONTROLLER://127.0.0.1:1"], None, "different port"),
        (["PLAINTEXT://127.0.0.1:1"], ["OTHER://127.0.0.1:1"], "advertised.listeners names OTHER"),
        (["OTHER://127.0.0.1:1"], None, "OTHER has no security protocol"),
        (["SASL_SSL://127.0.0.1:1"], None, "SASL is not served yet"),
    ],
)
def test_listeners_must_fit_together(bound: list[str], advertised: list[str] | None, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        build(bound, advertised)


def test_the_system_may_choose_several_ports() -> None:
    assert len(build(["PLAINTEXT://127.0.0.1:0", "CONTROLLER://127.0.0.1:0"])[0]) == 2
