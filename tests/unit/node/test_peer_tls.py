"""TLS between nodes, on a real loopback socket: both show a certificate, and both look at the other's."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import random
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from strandline.config.dynamic import DynamicConfig
from strandline.config.errors import ConfigError
from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.config.tls import tls_config
from strandline.node.listener import server_context
from strandline.node.peer_tls import context_to
from strandline.node.peers import ConnectionLost, NotSent, Peers
from strandline.raft.messages import Address
from strandline.runtime.clock import SystemClock
from strandline.wire import messages

from .scripted import Controller, config_of, quiet_logger

HEARTBEAT = 63


class Keys:
    """An authority, and what it signed, as PEM files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.authority = trustme.CA()
        self.trust = str(path / "ca.pem")
        self.authority.cert_pem.write_to_path(self.trust)

    def issue(self, name: str) -> str:
        file = str(self.path / f"{name}.pem")
        self.authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(file)
        return file


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


def broker(keys: Keys, **settings: str) -> NodeConfig:
    """A mere broker: it has no controller listener, only settings for one."""
    texts = {
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "listener_name_controller_ssl_keystore_location": keys.issue("127.0.0.1"),
        "listener_name_controller_ssl_truststore_location": keys.trust,
    }
    return config_of(**(texts | settings))


async def ask(keys: Keys, config: NodeConfig, certified: str = "127.0.0.1") -> Any:
    """Ask a controller that demands a certificate, and whose own says `certified`."""
    server_keys = {
        "ssl.keystore.location": keys.issue(certified),
        "ssl.truststore.location": keys.trust,
        "ssl.client.auth": "required",
    }
    controller = Controller({HEARTBEAT: lambda request: messages.response(HEARTBEAT)(is_caught_up=True)})
    await controller.serve("127.0.0.1", 0, server_context(tls_config("CONTROLLER", server_keys.get)))
    peers = Peers(DynamicConfig(config), SystemClock(), random.Random(1), quiet_logger(), lambda node_id, purpose: None)
    try:
        peer = peers.connection(1, Address("127.0.0.1", controller.port), "control")
        return await peer.ask(HEARTBEAT, messages.request(HEARTBEAT)(), 5.0)
    finally:
        await peers.close()
        controller.stop()


async def test_a_broker_and_a_controller_trust_each_other(keys):
    assert (await ask(keys, broker(keys))).is_caught_up


async def test_keys_may_stand_in_the_configuration_itself(keys):
    leaf = keys.authority.issue_cert("127.0.0.1")
    chain = b"".join(pem.bytes() for pem in leaf.cert_chain_pems).decode()
    config = broker(
        keys,
        listener_name_controller_ssl_keystore_location="",
        listener_name_controller_ssl_keystore_key=leaf.private_key_pem.bytes().decode(),
        listener_name_controller_ssl_keystore_certificate_chain=chain,
        listener_name_controller_ssl_truststore_location="",
        listener_name_controller_ssl_truststore_certificates=keys.authority.cert_pem.bytes().decode(),
    )
    assert (await ask(keys, config)).is_caught_up


async def test_a_certificate_for_another_name_is_refused_unless_names_do_not_count(keys):
    with pytest.raises(NotSent, match="CERTIFICATE_VERIFY_FAILED"):
        await ask(keys, broker(keys), "elsewhere.example")
    lenient = broker(keys, listener_name_controller_ssl_endpoint_identification_algorithm="")
    assert (await ask(keys, lenient, "elsewhere.example")).is_caught_up


async def test_a_certificate_of_another_authority_is_refused(keys, tmp_path):
    with pytest.raises(NotSent, match="CERTIFICATE_VERIFY_FAILED"):
        await ask(keys, broker(keys, listener_name_controller_ssl_truststore_location=Keys(tmp_path).trust))


async def test_the_controller_refuses_a_stranger(keys, tmp_path):
    stranger = Keys(tmp_path).issue("127.0.0.1")
    with pytest.raises(ConnectionLost):
        await ask(keys, broker(keys, listener_name_controller_ssl_keystore_location=stranger))


def test_a_controller_dials_with_the_keys_of_its_own_listener(keys):
    texts = {
        "node.id": "1",
        "process.roles": "controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "listeners": "CONTROLLER://127.0.0.1:9093",
        "listener.security.protocol.map": "CONTROLLER:SSL",
        "ssl.keystore.location": keys.issue("127.0.0.1"),
        "ssl.truststore.location": keys.trust,
        "log.dirs": "/data",
    }
    context = context_to(NodeConfig.build(of(texts)), "CONTROLLER")
    assert context is not None
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_plaintext_needs_nothing():
    assert context_to(config_of(), "CONTROLLER") is None


async def test_keys_that_can_not_be_read_are_told_at_the_start(keys):
    config = broker(keys, listener_name_controller_ssl_truststore_location=str(keys.path / "nothing.pem"))
    with pytest.raises(ConfigError, match="listener CONTROLLER"):
        Peers(DynamicConfig(config), SystemClock(), random.Random(1), quiet_logger(), lambda node_id, purpose: None)


def test_it_works_on_uvloop(keys):
    import uvloop

    reply = uvloop.run(ask(keys, broker(keys)))
    assert reply.is_caught_up
