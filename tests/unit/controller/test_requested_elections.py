"""Elections that an operator asks for: which are refused, and who is elected."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import pytest

from strandline.controller import requested_elections
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import Election
from strandline.errors import ErrorCode, KafkaError

from .partitions import happen, image_of


@pytest.mark.parametrize(
    ("words", "before", "event", "afterwards"),
    [
        ("", "123 isr=123 leader=2", "elect preferred", "123 isr=123 leader=1 epoch+1"),
        ("", "123 isr=123 leader=1", "elect preferred", "ELECTION_NOT_NEEDED"),
        ("", "123 isr=23 leader=2", "elect preferred", "PREFERRED_LEADER_NOT_AVAILABLE"),
        ("", "123 isr=123 leader=2 stopping=1", "elect preferred", "PREFERRED_LEADER_NOT_AVAILABLE"),
        ("", "123 isr=3", "elect preferred", "123 isr=3 leader=3 epoch+1"),
        ("", "123 isr=3 down=3", "elect preferred", "PREFERRED_LEADER_NOT_AVAILABLE"),
        ("", "123 isr=3 down=3", "elect unclean", "123 isr=1 leader=1 recovering epoch+1"),
        ("", "123 isr=3", "elect unclean", "123 isr=3 leader=3 epoch+1"),
        ("", "123 isr=3 leader=3", "elect unclean", "ELECTION_NOT_NEEDED"),
        ("", "123 isr=3 down=123", "elect unclean", "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
        ("min=2 elr", "123 elr=2 last=2", "elect unclean", "123 isr=2 leader=2 epoch+1"),
        ("min=2 elr", "123 last=2", "elect preferred", "123 isr=2 leader=2 recovering epoch+1"),
    ],
)
def test_b8_elections_that_are_asked_for(words: str, before: str, event: str, afterwards: str) -> None:
    assert happen(before, event, words) == afterwards


def test_a_partition_that_is_not_there_can_not_be_elected_for() -> None:
    image = image_of("123 isr=123 leader=2")
    for topic, index in (("t", 1), ("t", -1), ("u", 0)):
        with pytest.raises(KafkaError) as error:
            requested_elections.elect(image, topic, index, Election.PREFERRED, ElectionPolicy())
        assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
