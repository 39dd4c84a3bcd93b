"""The entry point of the command line: every command by name, loaded when it is called.

Always true: exit code 0 means done, 1 refused or failed (one line on stderr says what, where and what to do), 2 wrong usage;
a user never sees a traceback unless the environment asks for one.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import NamedTuple, NoReturn

import click

from strandline import __version__

TRACEBACK = "STRANDLINE_TRACEBACK"
"""The environment variable that shows the traceback of an unexpected failure."""


class CommandEntry(NamedTuple):
    """The module of a command, below this package, and its line in the list of all commands.

    Always true: the module defines the command under its own name, with underscores for dashes.
    """

    module: str
    summary: str


OWN_CLUSTER, DATA, FILES = "A cluster", "Topics and records", "Files and configuration"
PROOF, KAFKA = "Proof and stories", "Kafka's own tools"

COMMANDS: dict[str, dict[str, CommandEntry]] = {
    OWN_CLUSTER: {
        "up": CommandEntry("local.up", "Start a cluster on this machine and wait until it answers."),
        "status": CommandEntry("local.status", "Show the nodes that `up` started."),
        "down": CommandEntry("local.down", "Stop the nodes that `up` started."),
        "server": CommandEntry("local.server", "Run one node in the foreground."),
        "cluster": CommandEntry("cluster.cluster", "Show a cluster and its nodes, and unregister a broker."),
        "quorum": CommandEntry("quorum.quorum", "Show and change the quorum of controllers."),
        "features": CommandEntry("cluster.features", "Show and change the features of a cluster."),
        "timeline": CommandEntry("monitoring.timeline", "Show what happened to a cluster, and why."),
        "doctor": CommandEntry("doctor.doctor", "Check this machine and a cluster, and say what to do."),
    },
    DATA: {
        "topics": CommandEntry("topics.topics", "List, create, describe, alter and delete topics."),
        "produce": CommandEntry("records.produce", "Write records to a topic."),
        "consume": CommandEntry("records.consume", "Read records of a topic."),
        "groups": CommandEntry("groups.groups", "List and describe groups, and change their offsets."),
        "transactions": CommandEntry(
            "transactions.transactions", "List and describe transactions, and end those that hang."
        ),
        "configs": CommandEntry("configs.configs", "Show and change the configuration of topics, brokers and groups."),
        "replicas": CommandEntry(
            "monitoring.replicas", "Show the offsets and lag of every replica, and which are in sync."
        ),
        "elect": CommandEntry("elections.elect", "Elect the preferred leaders of partitions."),
        "reassign": CommandEntry("reassignment.reassign", "Move partitions to other brokers, and show the progress."),
        "spark": CommandEntry(
            "spark.spark", "Start Spark on topics: a shell, a program, an environment for a cluster."
        ),
        "api-versions": CommandEntry("cluster.api_versions", "Show which APIs each broker serves."),
    },
    FILES: {
        "storage": CommandEntry("storage.storage", "Format log dirs and show them."),
        "dump-log": CommandEntry("storage.dump_log", "Print the batches and records of log files."),
        "config-reference": CommandEntry("configs.config_reference", "Print every configuration key as Markdown."),
    },
    PROOF: {
        "sim": CommandEntry("simulator.sim", "Search simulated histories for a broken promise, or replay one."),
        "story": CommandEntry("simulator.story", "Tell how a cluster works, step by step, on simulated nodes."),
    },
    KAFKA: {
        "kafka-topics": CommandEntry("kafka_tools.kafka_topics", "As `topics`."),
        "kafka-console-producer": CommandEntry("kafka_tools.kafka_console", "As `produce`."),
        "kafka-console-consumer": CommandEntry("kafka_tools.kafka_console", "As `consume`."),
        "kafka-consumer-groups": CommandEntry("kafka_tools.kafka_consumer_groups", "As `groups`."),
        "kafka-transactions": CommandEntry("kafka_tools.kafka_transactions", "As `transactions`."),
        "kafka-configs": CommandEntry("kafka_tools.kafka_configs", "As `configs`."),
        "kafka-metadata-quorum": CommandEntry("kafka_tools.kafka_metadata_quorum", "As `quorum`."),
        "kafka-features": CommandEntry("kafka_tools.kafka_features", "As `features`."),
        "kafka-cluster": CommandEntry("kafka_tools.kafka_cluster", "As `cluster`."),
        "kafka-leader-election": CommandEntry("kafka_tools.kafka_leader_election", "As `elect`."),
        "kafka-reassign-partitions": CommandEntry("kafka_tools.kafka_reassign_partitions", "As `reassign`."),
        "kafka-storage": CommandEntry("storage.storage", "As `storage`."),
        "kafka-dump-log": CommandEntry("storage.dump_log", "As `dump-log`."),
        "kafka-broker-api-versions": CommandEntry("cluster.api_versions", "As `api-versions`."),
        "kafka-server-start": CommandEntry("local.server", "As `server`."),
    },
}


class LazyCommands(click.Group):
    """The group of all commands; the module of one is imported when that one is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for entries in COMMANDS.values() for name in entries]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        # A command copied from Kafka's documentation names a script, perhaps with its directory.
        name = os.path.basename(name).removesuffix(".sh")
        for entries in COMMANDS.values():
            if name in entries:
                module = importlib.import_module(f"strandline.cli.{entries[name].module}")
                command: click.Command = getattr(module, name.replace("-", "_"))
                return command
        return None

    def invoke(self, context: click.Context) -> object:
        try:
            done = super().invoke(context)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of the pipe has closed it. Python would report that again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return done

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(context, args)
        except click.UsageError:
            import difflib

            close = difflib.get_close_matches(args[0], self.list_commands(context), 1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise click.UsageError(f"no command '{args[0]}'{hint}", context) from None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for section, entries in COMMANDS.items():
            with formatter.section(section):
                formatter.write_dl([(name, entry.summary) for name, entry in entries.items()])


@click.command(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start here: strandline up · strandline COMMAND --help shows an example of each.",
)
@click.version_option(__version__, message="strandline %(version)s")
def strandline() -> None:
    """A Kafka-compatible log."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """The exit code of one call."""
    try:
        done = strandline.main(arguments, prog_name="strandline", standalone_mode=False)
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        return 1
    except Exception as error:
        from strandline.cli.errors import explain
        from strandline.cli.terminal.escaping import echo

        if os.environ.get(TRACEBACK):
            raise
        echo(f"strandline: {explain(error)}", err=True)
        return 1
    return done if isinstance(done, int) else 0


def _show(error: click.ClickException) -> None:
    """As click shows it, but escaped: it may quote text from an untrusted source (SEC-H3)."""
    import io

    from strandline.cli.terminal.escaping import echo

    shown = io.StringIO()
    error.show(shown)
    echo(shown.getvalue(), err=True, nl=False)
