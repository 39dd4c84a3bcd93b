"""The committed image and the tip: what is in them, and when."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio

import pytest

from strandline.metadata.image import MetadataImage
from strandline.metadata.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from strandline.metadata.replay import replay
from strandline.node.quorum.batches import MetadataBatch
from strandline.node.quorum.images import Decision, Images, LoadedSnapshot
from strandline.raft.voters import VoterSet

from .stage import topic

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def batch(end_offset, *records, epoch=1, **said):
    return MetadataBatch(end_offset, epoch, 1000 + end_offset, 100, list(records), **said)


def shown(image):
    return sorted(image.topics), image.end_offset, image.epoch


def test_batches_are_replayed_in_order():
    images = Images()
    images.replay([batch(2, topic("a")), batch(4, topic("b"), epoch=2)])
    images.replay([batch(5, voters=VoterSet(), kraft_version=1)])
    assert shown(images.committed) == (["a", "b"], 5, 1)
    assert (images.position, images.unsaved_bytes, images.timestamp_ms) == (5, 300, 1005)
    assert (images.voters, images.kraft_version) == (VoterSet(), 1)


def test_of_a_transaction_all_is_shown_or_nothing():
    images = Images()
    images.replay([batch(2, topic("a")), batch(4, topic("b"), BEGIN, topic("c"))])
    assert shown(images.committed) == (["a"], 2, 1)
    assert (images.position, images.is_within_transaction) == (4, True)
    images.replay([batch(6, topic("d"))])
    assert shown(images.committed) == (["a"], 2, 1)
    images.replay([batch(8, END)])
    assert shown(images.committed) == (["a", "b", "c", "d"], 8, 1)
    images.replay([batch(10, BEGIN, topic("e")), batch(12, ABORT, topic("f"))])
    assert shown(images.committed) == (["a", "b", "c", "d", "f"], 12, 1)


def test_a_snapshot_takes_the_place_of_everything():
    images = Images()
    images.replay([batch(2, topic("a")), batch(4, BEGIN, topic("b"))])
    image = replay(MetadataImage(), [topic("c")], 20, 3)
    images.load(LoadedSnapshot(image, 1, VoterSet(), 77))
    assert (images.committed, images.position, images.unsaved_bytes, images.timestamp_ms) == (image, 20, 0, 77)
    assert (images.kraft_version, images.is_within_transaction) == (1, False)
    images.replay([batch(22, topic("d"))])
    assert shown(images.committed) == (["c", "d"], 22, 1)


def decision(images, name, start_offset, end_offset):
    images.advance_tip([topic(name)], end_offset, 2)
    made = Decision(start_offset, end_offset, 50, 9, images.tip, asyncio.get_running_loop().create_future())
    images.add(made)
    return made


async def test_decisions_become_committed_one_by_one():
    images = Images()
    images.replay([batch(2, topic("a"))])
    assert images.tip is images.committed
    images.begin_deciding(3, 2)
    first, second = decision(images, "b", 3, 5), decision(images, "c", 5, 6)
    assert shown(images.tip) == (["a", "b", "c"], 6, 2)
    assert shown(images.committed) == (["a"], 2, 1)
    assert (images.next_decision, images.last_decision) == (first, second)
    images.replay([batch(3)])
    assert images.take() is first
    assert shown(images.committed) == (["a", "b"], 5, 2)
    assert images.next_decision is second


async def test_with_leadership_goes_what_is_not_committed():
    images = Images()
    images.begin_deciding(0, 2)
    first, second = decision(images, "b", 0, 2), decision(images, "c", 2, 4)
    assert images.stop_deciding(3) == [second]
    assert images.next_decision is first
    assert images.tip is images.committed


def position_ahead(images):
    images.position += 1


def held_of_no_transaction(images):
    images._held = [topic("x")]


def committed_within_a_transaction(images):
    images._held, images.is_within_transaction = [topic("x")], True


def decision_before_the_one_before(images):
    decision(images, "b", 2, 4)


def tip_without_a_decision(images):
    images.begin_deciding(2, 2)


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (position_ahead, "read 3"),
        (held_of_no_transaction, "records are held"),
        (committed_within_a_transaction, "of a transaction"),
        (decision_before_the_one_before, "a decision from 2 to 4 after 5"),
        (tip_without_a_decision, "the tip is 2"),
    ],
)
async def test_what_must_hold_is_checked(broken, problem):
    images = Images()
    images.replay([batch(2, topic("a"))])
    images.begin_deciding(2, 2)
    decision(images, "c", 2, 5)
    images.check_invariants()
    broken(images)
    with pytest.raises(AssertionError, match=problem):
        images.check_invariants()
