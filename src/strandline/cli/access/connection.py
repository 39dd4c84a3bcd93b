"""The connection of a command to its cluster.

Always true: a command that reaches no broker fails at once instead of retrying for a minute; every connection is closed when
the command ends. Commands use the blocking client, which saves the time to import an event loop.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TypeVar

import click

from strandline.cli.access.client_properties import ConnectionSettings, connection_settings
from strandline.cli.access.options import Access
from strandline.cli.errors import CommandRefused
from strandline.client.blocking import Admin, Client
from strandline.client.core.cluster_metadata import TopicMetadata
from strandline.client.errors import MismatchedEndpoint
from strandline.errors import ErrorCode, KafkaError

T = TypeVar("T")
TOPIC_TIMEOUT_S = 5.0
"""How long a topic that is being created may take to get a leader."""
TOPIC_POLL_S = 0.05


@contextlib.contextmanager
def connect(to: ConnectionSettings, *, controllers: bool = False) -> Iterator[Client]:
    """A client that has reached a broker, or a controller."""
    try:
        client = Client(to.bootstrap_server, config=to.config, tls=to.tls, controllers=controllers)
    except ValueError as error:
        raise click.UsageError(f"--bootstrap-{'controller' if controllers else 'server'}: {error}") from None
    with client:
        try:
            client.scheduler.run(client.flow.refresh(()))
        except MismatchedEndpoint as error:
            raise KafkaError(error.code, _mismatch(error)) from None
        yield client


def _mismatch(error: MismatchedEndpoint) -> str:
    if error.is_controller:
        return (
            f"{error.address} is a controller's listener: give --bootstrap-server a broker's address; "
            "commands that controllers answer take theirs as --bootstrap-controller"
        )
    return f"{error.address} is a broker's listener, not a controller's: give it as --bootstrap-server"


@contextlib.contextmanager
def connect_admin(access: Access) -> Iterator[Admin]:
    if access.bootstrap_controller is None:
        with connect(connection_settings(access)) as client:
            yield Admin(client)
    else:
        with connect(
            connection_settings(access._replace(bootstrap_server=access.bootstrap_controller)), controllers=True
        ) as client:
            yield Admin(client)


def value_of(answer: T | KafkaError) -> T:
    """The result for one resource; raises its error."""
    if isinstance(answer, KafkaError):
        raise answer
    return answer


def require_topic(client: Client, name: str, *, create: bool = False) -> TopicMetadata:
    """The topic. With `create` the broker may create it (auto.create.topics.enable); then this waits until it has a leader."""
    deadline = time.monotonic() + TOPIC_TIMEOUT_S
    while True:
        client.scheduler.run(client.flow.refresh([name], allow_auto_topic_creation=create))
        topic = client.flow.cluster.topics.get(name)
        is_led = topic is not None and any(part.leader >= 0 for part in topic.partitions.values())
        if topic is not None and (is_led or not create or time.monotonic() > deadline):
            return topic
        code = client.flow.cluster.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not KafkaError(code).retriable:
            raise KafkaError(code, f"'{name}' cannot be a topic")
        if time.monotonic() > deadline or (code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not create):
            raise CommandRefused(f"there is no topic '{name}'; `strandline topics create {name}` makes it")
        time.sleep(TOPIC_POLL_S)
