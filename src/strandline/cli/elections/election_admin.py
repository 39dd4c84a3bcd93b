"""What `elect` and `kafka-leader-election` share: the partitions in a file, and electing their leaders."""

from __future__ import annotations

import json
from typing import NamedTuple

from strandline.cli.access.options import Access
from strandline.cli.errors import CommandRefused
from strandline.ids import TopicPartition

Partitions = list[TopicPartition]


class ElectionResults(NamedTuple):
    """The partitions of an election by their result."""

    done: Partitions
    not_needed: Partitions
    failed: dict[TopicPartition, str]


def read_partitions(path: str) -> Partitions:
    """Kafka's file: {"partitions": [{"topic": "t", "partition": 0}, …]}."""
    with open(path, encoding="utf-8") as file:
        try:
            found = [(str(each["topic"]), int(each["partition"])) for each in json.load(file)["partitions"]]
        except (ValueError, KeyError, TypeError) as error:
            raise CommandRefused(
                f'{path} is not of the form {{"partitions": [{{"topic": "t", "partition": 0}}]}}: {error}'
            ) from None
    twice = sorted({f"{topic}-{partition}" for topic, partition in found if found.count((topic, partition)) > 1})
    if twice:
        raise CommandRefused(f"{path} contains duplicate partitions: {', '.join(twice)}")
    return found


def elect(access: Access, unclean: bool, partitions: Partitions | None) -> ElectionResults:
    """Elect leaders of these partitions, or of all that need an election (None)."""
    from strandline.cli.access.connection import connect_admin
    from strandline.client.flow.descriptions import ElectionType
    from strandline.errors import ErrorCode

    with connect_admin(access) as admin:
        answers = admin.elect_leaders(ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED, partitions)
    found = ElectionResults([], [], {})
    for key, error in sorted(answers.items()):
        if error is None:
            found.done.append(key)
        elif error.code is ErrorCode.ELECTION_NOT_NEEDED:
            found.not_needed.append(key)
        else:
            found.failed[key] = f"{error.message or error.code.name} ({error.code.name})"
    return found


def names(partitions: Partitions) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions)
