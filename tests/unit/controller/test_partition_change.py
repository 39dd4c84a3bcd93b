"""One partition's change: reassignments that end, replicas that stay eligible, leaders that are elected."""

from __future__ import annotations

import pytest

from strandline.controller.leader_election import Election, Terms, active_brokers
from strandline.controller.partition_change import AS_IT_IS, PartitionTarget, change
from strandline.controller.placement import MIGRATING_DIRECTORY
from strandline.metadata.records import PartitionChangeRecord

from .partitions import TOPIC_ID, directory, happen, image_of, partition_of


@pytest.mark.parametrize(
    ("rule", "words", "before", "event", "afterwards"),
    [
        # B6
        ("an ISR alone", "", "123 isr=123 leader=1", "isr 12", "123 isr=12 leader=1"),
        ("an election", "", "123 isr=123 leader=1", "fence 1", "123 isr=23 leader=2 epoch+1"),
        ("no leader any more", "", "1 isr=1 leader=1", "fence 1", "1 isr=1 epoch+1"),
        ("a replica added", "", "12 isr=12 leader=1", "reassign 123", "123 isr=12 leader=1 adding=3"),
        ("a replica removed", "", "123 isr=123 leader=1", "reassign 12", "12 isr=12 leader=1 epoch+1"),
        ("another order", "", "123 isr=123 leader=1", "reassign 321", "321 isr=123 leader=1"),
    ],
)
def test_b6_the_leader_epoch_rises_on_elections_and_removals(
    rule: str, words: str, before: str, event: str, afterwards: str
) -> None:
    assert happen(before, event, words) == afterwards, rule


@pytest.mark.parametrize(
    ("rule", "words", "before", "event", "afterwards"),
    [
        ("the first replica in sync", "", "3124 isr=421 leader=4", "fence 4", "3124 isr=21 leader=1 epoch+1"),
        ("not one that is stopping", "", "123 isr=123 leader=1 stopping=2", "fence 1", "123 isr=23 leader=3 epoch+1"),
        ("a leader that may stay stays", "", "123 isr=123 leader=3", "fence 1", "123 isr=23 leader=3"),
        ("nobody outside the ISR", "", "123 isr=1 leader=1", "fence 1", "123 isr=1 epoch+1"),
        ("nor of the ELR while there is an ISR", "min=2 elr", "123 isr=1 leader=1 elr=3", "elect preferred",
         "ELECTION_NOT_NEEDED"),
        ("of the ELR when the ISR is empty", "min=2 elr", "123 elr=23 last=2 down=2", "unfence 3",
         "123 isr=3 leader=3 elr=2 epoch+1"),
        ("the first of the ELR in assignment order", "min=3 elr", "321 elr=123 last=2", "periodic",
         "321 isr=3 leader=3 elr=21 epoch+1"),
    ],
)  # fmt: skip
def test_b7_a_clean_election(rule: str, words: str, before: str, event: str, afterwards: str) -> None:
    assert happen(before, event, words) == afterwards, rule


@pytest.mark.parametrize(
    ("rule", "words", "before", "event", "afterwards"),
    [
        ("not unless enabled", "", "123 isr=1 down=1", "periodic", "123 isr=1"),
        ("the first who is there", "unclean", "123 isr=1 leader=1", "fence 1", "123 isr=2 leader=2 recovering epoch+1"),
        ("clean if that can be", "unclean", "123 isr=13 leader=1", "fence 1", "123 isr=3 leader=3 epoch+1"),
        ("the ELR is forgotten", "unclean min=2 elr", "123 elr=1 last=1 down=1", "periodic",
         "123 isr=2 leader=2 recovering epoch+1"),
        ("the ELR comes first", "unclean min=2 elr", "123 elr=3 last=1 down=1", "periodic",
         "123 isr=3 leader=3 epoch+1"),
        ("recovering still", "unclean", "123 isr=1 leader=1 recovering", "fence 1",
         "123 isr=2 leader=2 recovering epoch+1"),
        ("the last leader when back", "min=2 elr", "123 last=2 down=2", "unfence 2",
         "123 isr=2 leader=2 recovering epoch+1"),
        ("nobody else when back", "min=2 elr", "123 last=2 down=23", "unfence 3", "123 last=2"),
        ("not while someone is eligible", "min=2 elr", "123 elr=1 last=2 down=12", "unfence 2", "123 elr=1 last=2"),
        ("not of several", "min=2 elr", "123 last=23 down=2", "unfence 2", "123 last=23"),
        ("not while ELR is off", "min=2", "123 last=2 down=2", "unfence 2", "123 last=2"),
    ],
)  # fmt: skip
def test_b9_an_unclean_election(rule: str, words: str, before: str, event: str, afterwards: str) -> None:
    assert happen(before, event, words) == afterwards, rule


@pytest.mark.parametrize(
    ("rule", "words", "before", "event", "afterwards"),
    [
        ("enough are in sync", "min=2 elr", "123 isr=123 leader=1", "isr 12", "123 isr=12 leader=1"),
        ("too few are", "min=2 elr", "123 isr=12 leader=1", "isr 1", "123 isr=1 leader=1 elr=2"),
        ("and fewer", "min=3 elr", "123 isr=12 leader=1 elr=3", "isr 1", "123 isr=1 leader=1 elr=23"),
        ("one is back", "min=3 elr", "123 isr=1 leader=1 elr=23", "isr 12", "123 isr=12 leader=1 elr=3"),
        ("enough are back", "min=2 elr", "123 isr=1 leader=1 elr=3", "isr 12", "123 isr=12 leader=1"),
        ("the last goes", "min=2 elr", "123 isr=1 leader=1 elr=2 down=2", "fence 1", "123 elr=12 last=1 epoch+1"),
        ("one that may have lost records", "min=2 elr", "123 isr=1 leader=1 elr=2", "crash 2", "123 isr=1 leader=1"),
        ("the leader may have", "min=2 elr", "123 isr=1 leader=1 elr=2 down=2", "crash 1", "123 elr=2 last=1 epoch+1"),
        ("all may have", "min=1 elr", "123 elr=1 last=1 down=1", "crash 1", "123 last=1"),
        ("ELR is off", "min=2", "123 isr=12 leader=1", "isr 1", "123 isr=1 leader=1"),
        ("ELR was on", "min=2", "123 isr=1 leader=1 elr=2", "isr 1", "123 isr=1 leader=1"),
        ("ELR was on and nobody leads", "min=2", "123 elr=2 last=1 down=123", "unfence 3", "123 elr=2 last=1"),
        ("ELR was on and one leads again", "min=2", "123 elr=23 last=1 down=123", "unfence 3",
         "123 isr=3 leader=3 epoch+1"),
        ("fewer replicas than the minimum", "min=3 elr", "12 isr=1 leader=1", "isr 12", "12 isr=12 leader=1"),
        ("one is enough now", "min=1 elr", "123 elr=23 last=2 down=2", "unfence 3", "123 isr=3 leader=3 epoch+1"),
    ],
)  # fmt: skip
def test_b10_who_stays_eligible(rule: str, words: str, before: str, event: str, afterwards: str) -> None:
    assert happen(before, event, words) == afterwards, rule


@pytest.mark.parametrize(
    ("rule", "words", "before", "event", "afterwards"),
    [
        ("from the first moment", "min=2 elr", "123 isr=2 leader=2", "fence 2", "123 elr=2 last=2 epoch+1"),
        ("kept", "min=2 elr", "123 elr=12 last=2 down=12", "crash 1", "123 elr=2 last=2"),
        ("until someone leads", "min=2 elr", "123 elr=12 last=2 down=12", "unfence 1",
         "123 isr=1 leader=1 elr=2 epoch+1"),
        ("ELR came when nobody led", "min=2 elr", "123 isr=2 down=2", "crash 2", "123 last=2"),
    ],
)  # fmt: skip
def test_i10_the_last_leader_is_known_while_nobody_leads(
    rule: str, words: str, before: str, event: str, afterwards: str
) -> None:
    assert happen(before, event, words) == afterwards, rule


@pytest.mark.parametrize(
    ("rule", "words", "before", "event", "afterwards"),
    [
        ("all that are added are in sync", "", "4123 isr=123 leader=1 adding=4 removing=3", "isr 1234",
         "412 isr=124 leader=1 epoch+1"),
        ("one of two is not yet", "", "451 isr=1 leader=1 adding=45 removing=1", "isr 14",
         "451 isr=14 leader=1 adding=45 removing=1"),
        ("the leader goes", "", "45123 isr=1234 leader=1 adding=45 removing=123", "isr 12345",
         "45 isr=45 leader=4 epoch+1"),
        ("only added", "", "1234 isr=123 leader=1 adding=4", "isr 1234", "1234 isr=1234 leader=1"),
        ("fewer wait for all that stay", "", "1234 isr=134 leader=1 removing=34", "isr 14",
         "1234 isr=14 leader=1 removing=34"),
        ("fewer, and all that stay are in sync", "", "1234 isr=134 leader=1 removing=34", "isr 124",
         "12 isr=12 leader=1 epoch+1"),
        ("never below the minimum", "min=2", "4123 isr=3 leader=3 adding=4 removing=3", "isr 34",
         "4123 isr=34 leader=3 adding=4 removing=3"),
        ("but as few as before", "min=3", "4123 isr=12 leader=1 adding=4 removing=3", "isr 14",
         "412 isr=14 leader=1 epoch+1"),
        ("all of one replica is enough", "min=2", "12 isr=12 leader=1 removing=2", "isr 12",
         "1 isr=1 leader=1 epoch+1"),
        ("who is gone is not eligible", "min=3 elr", "4123 isr=12 leader=1 elr=3 adding=4 removing=3", "isr 124",
         "412 isr=124 leader=1 epoch+1"),
        ("also when something else ends it", "", "1234 isr=1234 leader=1 removing=4", "fence 4",
         "123 isr=123 leader=1 epoch+1"),
    ],
)  # fmt: skip
def test_b15_a_reassignment_ends(rule: str, words: str, before: str, event: str, afterwards: str) -> None:
    assert happen(before, event, words) == afterwards, rule


def test_nothing_to_change_is_no_record() -> None:
    image = image_of("123 isr=123 leader=1")
    terms = Terms(active_brokers(image), 2, True, Election.PREFERRED)
    assert change(TOPIC_ID, 0, partition_of(image), AS_IT_IS, terms) is None


def test_only_what_differs_is_in_the_record() -> None:
    image = image_of("123 isr=123 leader=1")
    record = change(
        TOPIC_ID, 0, partition_of(image), PartitionTarget(isr=(1, 2)), Terms(active_brokers(image), 2, True)
    )
    assert record == PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=(1, 2))


def test_directories_follow_their_replicas() -> None:
    image = image_of("123 isr=123 leader=1")
    target = PartitionTarget(replicas=(3, 1, 4, 2), adding=(4,), directories={1: directory(1, 1)})
    record = change(TOPIC_ID, 0, partition_of(image), target, Terms(active_brokers(image), 1, False))
    assert record is not None
    assert record.directories == (directory(3), directory(1, 1), MIGRATING_DIRECTORY, directory(2))


@pytest.mark.parametrize(
    ("before", "event", "afterwards"),
    [
        ("123 isr=12 leader=1", "disk 1", "123 isr=2 leader=2 epoch+1"),
        ("123 isr=12 leader=2", "disk 1", "123 isr=2 leader=2"),
        ("123 isr=23 leader=2", "disk 1", "123 isr=23 leader=2"),
        ("1 isr=1 leader=1", "disk 1", "1 isr=1 epoch+1"),
    ],
)
def test_a_replica_on_a_lost_disk_does_not_lead(before: str, event: str, afterwards: str) -> None:
    assert happen(before, event) == afterwards
