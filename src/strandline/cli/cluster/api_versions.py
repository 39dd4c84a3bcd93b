"""`api-versions` and `kafka-broker-api-versions`: the APIs that each broker serves, and their versions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import click

from strandline.cli.access.options import Access, access_options, kafka_access_options
from strandline.cli.kafka_tools.kafka_flags import kafka_command
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, json_option, print_json, print_table

if TYPE_CHECKING:
    from strandline.client.core.cluster_metadata import BrokerMetadata
    from strandline.wire.stubs.api_versions import ApiVersionsResponse

API_VERSIONS: Final = 18
API_KEYS_MAX = 128
"""Greater than every API key."""
BETWEEN_NODES = frozenset({4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})
"""APIs between brokers and controllers; Kafka's tool does not list them as unsupported by a broker."""


@click.command(epilog=example("strandline api-versions"))
@access_options
@json_option
def api_versions(access: Access, as_json: bool) -> None:
    """Show which APIs each broker serves, and in which versions."""
    rows = [
        {
            "node_id": broker.node_id,
            "api_key": api.api_key,
            "name": name(api.api_key),
            "min": api.min_version,
            "max": api.max_version,
        }
        for broker, apis in _ask(access)
        for api in apis
    ]
    if as_json:
        print_json(rows)
        return
    print_table(("node", "key", "api", "min", "max"), [tuple(row.values()) for row in rows])


@kafka_command(epilog=example("strandline kafka-broker-api-versions --bootstrap-server 127.0.0.1:9092"))
@kafka_access_options()
def kafka_broker_api_versions(access: Access) -> None:
    """Show which APIs each broker serves, in the form of Kafka's tool."""
    for broker, apis in _ask(access):
        where = f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {broker.rack or 'null'} isFenced: false)"
        echo(f"{where} -> (\n\t" + ",\n\t".join(api_lines(apis)) + "\n)")


def api_lines(apis: Iterable[ApiVersionsResponse.ApiVersion]) -> list[str]:
    """A line for each API that the broker serves or that a client may request, by key."""
    lines = {key: f"{name(key)}({key}): UNSUPPORTED" for key in client_apis()}
    for api in apis:
        low, high = api.min_version, api.max_version
        span = str(low) if low == high else f"{low} to {high}"
        lines[api.api_key] = f"{name(api.api_key)}({api.api_key}): {span}{usable(api.api_key, range(low, high + 1))}"
    return [lines[key] for key in sorted(lines)]


def usable(api_key: int, theirs: range) -> str:
    """The newest version that both sides support, or which side is too old; nothing for an unknown API."""
    from strandline.wire import messages

    try:
        ours = messages.request_family(api_key).versions
    except LookupError:
        return ""
    if ours[-1] < theirs[0]:
        return " [unusable: node too new]"
    if theirs[-1] < ours[0]:
        return " [unusable: node too old]"
    return f" [usable: {min(ours[-1], theirs[-1])}]"


def client_apis() -> Iterator[int]:
    """The keys of the APIs that brokers serve to clients."""
    from strandline.wire import messages

    for key in range(API_KEYS_MAX):
        if key not in BETWEEN_NODES:
            with contextlib.suppress(LookupError):
                messages.request_family(key)
                yield key


def name(api_key: int) -> str:
    """The name of an API; UNKNOWN for one that is newer than this version."""
    from strandline.wire import messages

    try:
        return str(messages.request(api_key).__name__).removesuffix("Request")
    except LookupError:
        return "UNKNOWN"


def _ask(access: Access) -> list[tuple[BrokerMetadata, list[ApiVersionsResponse.ApiVersion]]]:
    from strandline import __version__
    from strandline.cli.access.client_properties import connection_settings
    from strandline.cli.access.connection import connect
    from strandline.client.flow.retry import check
    from strandline.wire import messages

    found = []
    with connect(connection_settings(access)) as client:
        for broker in client.flow.cluster.brokers.values():
            request = messages.request(API_VERSIONS)(
                client_software_name="strandline", client_software_version=__version__
            )
            response: ApiVersionsResponse = client.request(broker.node_id, API_VERSIONS, request)
            check(response.error_code)
            found.append((broker, sorted(response.api_keys, key=lambda api: api.api_key)))
    return found
