"""One real server for all clients, on a plain listener and on one with TLS."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
import trustme
from bench.kafka_cluster import free_ports
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.system.server import Server, eventually, format_data, running

# kafka-python, one of the judges, warns about itself when it is first imported, and warnings are errors here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401

from tests.system.clients import Broker

MakeTopic = Callable[..., str]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what its server logged last."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            server = value.server if isinstance(value, Broker) else value
            if isinstance(server, Server):
                report.sections.append(("server log", server.log_tail()))
                break
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.system)


@pytest.fixture(scope="session")
def ca(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The certificate that clients trust, and the PEM file with key and chain of the server."""
    directory = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    keystore, trusted = directory / "server.pem", directory / "ca.pem"
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(str(keystore))
    keystore.chmod(0o600)
    authority.cert_pem.write_to_path(str(trusted))
    return trusted, keystore


@pytest.fixture(scope="session")
def server_and_tls_port(
    tmp_path_factory: pytest.TempPathFactory, ca: tuple[Path, Path]
) -> Iterator[tuple[Server, int]]:
    directory = tmp_path_factory.mktemp("server")
    format_data(directory / "data")
    (tls_port,) = free_ports(1)
    properties = {
        "listeners": f"SSL://127.0.0.1:{tls_port}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(ca[1]),
        "num.partitions": "2",
    }
    with running(directory, directory / "data", properties) as server:
        yield server, tls_port


@pytest.fixture(scope="session")
def broker(server_and_tls_port: tuple[Server, int]) -> Broker:
    server, _ = server_and_tls_port
    return Broker(server.bootstrap, None, server)


@pytest.fixture(scope="session")
def broker_tls(server_and_tls_port: tuple[Server, int], ca: tuple[Path, Path]) -> Broker:
    server, tls_port = server_and_tls_port
    return Broker(f"127.0.0.1:{tls_port}", str(ca[0]), server)


@pytest.fixture(params=["plain", "tls"])
def either(request: pytest.FixtureRequest) -> Broker:
    """The same server through each of its two doors."""
    found = request.getfixturevalue("broker" if request.param == "plain" else "broker_tls")
    assert isinstance(found, Broker)
    return found


@pytest.fixture(scope="session")
def make_topic(broker: Broker) -> MakeTopic:
    """Makes a topic with a name of its own, ready to be used."""
    admin = AdminClient(broker.confluent())

    def make(partitions: int = 1, **config: str) -> str:
        name = f"topic-{uuid.uuid4().hex[:10]}"
        renamed = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=renamed)])[name].result(10)

        def has_leaders() -> bool:
            found = admin.list_topics(name, timeout=10).topics[name].partitions
            return len(found) == partitions and all(each.leader >= 0 for each in found.values())

        eventually(has_leaders, f"leaders of {name}")
        return name

    return make
