"""`api-versions` and `kafka-broker-api-versions`: which APIs each broker serves, and in which versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strandline.cli import kafka_flags
from strandline.cli.kafka_flags import kafka_command
from strandline.cli.output import bootstrap_option, example, json_option, print_json, print_table

if TYPE_CHECKING:
    from strandline.client.core.cluster import Broker

API_VERSIONS = 18


@click.command(epilog=example("strandline api-versions"))
@bootstrap_option
@json_option
def api_versions(bootstrap_server: str, as_json: bool) -> None:
    """Show which APIs each broker serves, and in which versions."""
    rows = [
        {
            "node_id": broker.node_id,
            "api_key": api.api_key,
            "name": name(api.api_key),
            "min": api.min_version,
            "max": api.max_version,
        }
        for broker, apis in _ask(bootstrap_server)
        for api in apis
    ]
    if as_json:
        print_json(rows)
        return
    print_table(("node", "key", "api", "min", "max"), [tuple(row.values()) for row in rows])


@kafka_command(epilog=example("strandline kafka-broker-api-versions --bootstrap-server 127.0.0.1:9092"))
@kafka_flags.bootstrap_option
@click.option("--command-config", type=click.Path(exists=True, dir_okay=False), hidden=True)
def kafka_broker_api_versions(bootstrap_server: str, command_config: str | None) -> None:
    """Show which APIs each broker serves, in the form of Kafka's tool."""
    for broker, apis in _ask(bootstrap_server):
        click.echo(
            f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {broker.rack or 'null'} isFenced: false) -> ("
        )
        lines = []
        for api in apis:
            span = (
                str(api.min_version)
                if api.min_version == api.max_version
                else f"{api.min_version} to {api.max_version}"
            )
            lines.append(f"\t{name(api.api_key)}({api.api_key}): {span} [usable: {usable(api)}]")
        click.echo(",\n".join(lines) + "\n)")


def usable(api: Any) -> str:
    """The newest version that both sides know."""
    from strandline.wire import messages

    try:
        ours = messages.request_family(api.api_key).versions
    except LookupError:
        return "none"
    newest = min(api.max_version, ours[-1])
    return str(newest) if newest >= max(api.min_version, ours[0]) else "none"


def name(api_key: int) -> str:
    """The name of an API; UNKNOWN for one that is newer than we are."""
    from strandline.wire import messages

    try:
        return str(messages.request(api_key).__name__).removesuffix("Request")
    except LookupError:
        return "UNKNOWN"


def _ask(bootstrap_server: str) -> list[tuple[Broker, list[Any]]]:
    from strandline import __version__
    from strandline.cli.cluster import connect
    from strandline.client.flow.retry import check
    from strandline.wire import messages

    found = []
    with connect(bootstrap_server) as client:
        for broker in client.flow.cluster.brokers.values():
            request = messages.request(API_VERSIONS)(
                client_software_name="strandline", client_software_version=__version__
            )
            response = client.request(broker.node_id, API_VERSIONS, request)
            check(response.error_code)
            found.append((broker, sorted(response.api_keys, key=lambda api: int(api.api_key))))
    return found
