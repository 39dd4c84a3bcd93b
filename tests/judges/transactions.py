"""Apache Kafka's Java producers and consumers, driven from a test: Transactions.java beside this file.

    with java_clients(server.bootstrap) as java:
        java.producer("writer")
        java("begin writer")
        java("send writer topic 0 value")
        java("commit writer")

Always true: a command ends before the next one begins; the JVM is gone when `java_clients` is left.
"""

from __future__ import annotations

import contextlib
import select
import subprocess
from collections.abc import Iterator

from tests.judges.java import judge

ANSWER_TIMEOUT_S = 90
STOP_TIMEOUT_S = 20


class JavaError(Exception):
    """The simple names of the exceptions, each before its cause, and what they say."""

    def __init__(self, names: list[str], messages: str) -> None:
        super().__init__(f"{','.join(names)}: {messages}")
        self.names = names


class JavaClients:
    """One JVM and the clients in it, each known by its name."""

    def __init__(self, process: subprocess.Popen[str], bootstrap: str) -> None:
        self._process = process
        self._bootstrap = bootstrap
        self._askers: set[str] = set()
        """Consumers that are no members of a group, kept for the next question."""

    def __call__(self, command: str) -> list[str]:
        """What the command found; JavaError if it failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        assert select.select([self._process.stdout], [], [], ANSWER_TIMEOUT_S)[0], f"no answer to: {command}"
        outcome, *words = self._process.stdout.readline().split()
        if outcome == "failed":
            raise JavaError(words[0].split(","), " ".join(words[1:]))
        assert outcome == "ok", f"{command}: {outcome} {words}"
        return words

    def producer(self, name: str, transactional_id: str | None = None, **config: str | int) -> None:
        """With its producer id and epoch."""
        given = {"transactional.id": transactional_id or name} | _dotted(config)
        self._make("producer", name, given)
        self(f"init {name}")

    def consumer(self, name: str, **config: str | int) -> None:
        usual: dict[str, str | int] = {"enable.auto.commit": "false", "auto.offset.reset": "earliest"}
        self._make("consumer", name, usual | {"isolation.level": "read_committed"} | _dotted(config))

    def _make(self, kind: str, name: str, config: dict[str, str | int]) -> None:
        whole = {"bootstrap.servers": self._bootstrap} | config
        self(f"{kind} {name} {' '.join(f'{key}={value}' for key, value in whole.items())}")

    def read(self, topic: str, partitions: int = 1, isolation: str = "read_committed") -> dict[int, list[str]]:
        """Everything that a consumer reads from the beginning to the end that this isolation level has."""
        if isolation not in self._askers:
            self.consumer(isolation, isolation_level=isolation)
            self._askers.add(isolation)
        found: dict[int, list[str]] = {partition: [] for partition in range(partitions)}
        for word in self(f"read {isolation} {topic} {partitions}"):
            partition, _, value = word.partition(":")
            found[int(partition)].append(value)
        return found

    def committed(self, group_id: str, topic: str, partitions: int = 1) -> dict[int, int]:
        """The offsets of a group once no transaction that may change them is open."""
        asker = f"asks-{group_id}"
        if asker not in self._askers:
            self.consumer(asker, group_id=group_id)
            self._askers.add(asker)
        words = self(f"committed {asker} {topic} {partitions}")
        return {int(partition): int(offset) for partition, _, offset in (word.partition(":") for word in words)}


def _dotted(config: dict[str, str | int]) -> dict[str, str | int]:
    return {key.replace("_", "."): value for key, value in config.items()}


@contextlib.contextmanager
def java_clients(bootstrap: str) -> Iterator[JavaClients]:
    """Skips the test with the reason where Java or Kafka's jars cannot be had."""
    command = judge().own_command("Transactions")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield JavaClients(process, bootstrap)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
