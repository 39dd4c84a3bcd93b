"""`doctor`: check this machine and a cluster, and say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access, command_config_option
from strandline.cli.local import local_cluster
from strandline.cli.terminal.output import example, json_option, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strandline.cli.doctor.checks import Finding

REQUEST_TIMEOUT_MS = 8000
"""The timeout of one request: a broker that does not answer is a finding, and is not waited for longer."""


@click.command(epilog=example("strandline doctor", "strandline doctor --bootstrap-server 127.0.0.1:9092 --json"))
@click.option("--bootstrap-server", "-b", metavar="HOST:PORT,…", help="The cluster to check.")
@command_config_option("--command-config")
@click.option("--dir", "directory", metavar="DIR", help="The cluster that `up` started there.  [default: .strandline]")
@json_option
def doctor(bootstrap_server: str | None, command_config: str | None, directory: str | None, as_json: bool) -> int:
    """Check this machine and, if there is one, a cluster. Exit code 1 if something fails."""
    from strandline.cli.doctor.checks import FAIL, machine

    if directory is not None and (bootstrap_server is not None or command_config is not None):
        raise click.UsageError(
            "--dir names a cluster that `up` started, the other options a remote one; give one of them"
        )
    findings = [*machine(), *_cluster(Access(bootstrap_server, command_config), directory)]
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        print_table(("", "check", "found", "what to do"), [(f.level, f.check, f.found, f.advice) for f in findings])
    return 1 if any(finding.level == FAIL for finding in findings) else 0


def _cluster(access: Access, directory: str | None) -> Iterator[Finding]:
    from strandline.cli.doctor.checks import FAIL, OK, Finding, private_directories
    from strandline.errors import KafkaError

    if access == Access():
        known = local_cluster.find(directory or local_cluster.DEFAULT_DIR)
        if known is None:
            if directory is not None:
                local_cluster.require(directory)
            return
        yield from private_directories([known.directory, *(node.directory for node in known.nodes)])
        for node in known.nodes:
            if node.alive:
                yield Finding(OK, "processes", f"node {node.node_id} runs, pid {node.status()['pid']}")
            else:
                up = local_cluster.command("up --detach", known.directory)
                advice = f"`{up}` starts it; the reason is at the end of {node.log_path}"
                yield Finding(FAIL, "processes", f"node {node.node_id} does not run", advice)
        running = [node.address for node in known.brokers if node.alive]
        if not running:
            return
        access = Access(",".join(running))
    import dataclasses

    from strandline.cli.access.client_properties import connection_settings
    from strandline.cli.access.connection import connect
    from strandline.cli.doctor import cluster_checks
    from strandline.client.blocking import Admin

    to = connection_settings(access)
    config = dataclasses.replace(
        to.config,
        default_api_timeout_ms=min(to.config.default_api_timeout_ms, REQUEST_TIMEOUT_MS),
        request_timeout_ms=min(to.config.request_timeout_ms, REQUEST_TIMEOUT_MS),
    )
    try:
        with connect(to._replace(config=config)) as client:
            yield from cluster_checks.cluster(Admin(client))
    except KafkaError as error:
        yield Finding(FAIL, "cluster", error.message, "start it with `strandline up`, or name another address")
