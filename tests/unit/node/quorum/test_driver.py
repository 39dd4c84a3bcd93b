"""What is done for Raft while other things happen."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio

import pytest

from strandline.raft.messages import RaftFetchRequest, ReplicaKey
from strandline.records.header import iterate

from .stage import adding, play
from .test_restart import decide_many


def fetch(quorum, offset):
    return RaftFetchRequest(ReplicaKey(9), quorum.raft.epoch, offset, quorum.raft.epoch, 0.0, -1, 1000)


async def asked(quorum, request, answers):
    quorum.submit(request, answers.append)


def test_records_that_are_not_in_memory_are_waited_for():
    async def story(stage):
        await decide_many(stage, 20)
        [member] = stage.members
        member.disk.cold_probability = 1.0
        member.disk.offload_s = (0.1, 0.1)
        answers = []
        await stage.on(member, asked(member.quorum, fetch(member.quorum, 5), answers))
        assert not answers
        member.disk.cold_probability = 0.0
        await stage.until(lambda: answers)
        assert next(iterate(answers[0].records))[1].base_offset == 5

    play(story, count=1)


@pytest.mark.parametrize("after_s", [0.0, 0.05])
def test_records_that_go_while_they_are_waited_for_are_in_a_snapshot(after_s):
    """With the file that they were in (seed 600601)."""

    async def story(stage):
        await decide_many(stage, 20)
        [member] = stage.members
        quorum = member.quorum
        quorum.log.roll(0)
        await decide_many(stage, 2, "u")
        snapshot_id = await stage.on(member, quorum._snapshotting.take())
        member.disk.cold_probability = 1.0
        member.disk.offload_s = (0.1, 0.1)
        answers = []
        await stage.on(member, asked(quorum, fetch(quorum, 5), answers))
        await asyncio.sleep(after_s)
        quorum.log.advance_start(snapshot_id.offset)
        quorum.log.drop_segments(1, 0)
        assert quorum.log.segments[0].base_offset > 5
        await stage.until(lambda: answers)
        assert (answers[0].records, answers[0].snapshot_id) == (b"", snapshot_id)

    play(story, count=1)


def test_whoever_is_gone_is_not_answered():
    async def story(stage):
        [member] = stage.members
        await stage.decide("a")
        quorum, answers = member.quorum, []
        answer = answers.append
        parked = fetch(quorum, quorum.log.log_end_offset)._replace(
            max_wait_s=60.0, high_watermark=quorum.high_watermark
        )
        await stage.on(member, submitted(quorum, parked, answer))
        await stage.on(member, cancelled(quorum, answer))
        await stage.decide("b")
        await asyncio.sleep(1)
        assert not answers

    async def submitted(quorum, request, answer):
        quorum.submit(request, answer)

    async def cancelled(quorum, answer):
        quorum.cancel(answer)

    play(story, count=1)


def test_who_waits_for_records_gets_them_in_the_turn_in_which_they_are_written():
    async def story(stage):
        [member] = stage.members
        await stage.decide("a")
        quorum, answers = member.quorum, []
        parked = fetch(quorum, quorum.log.log_end_offset)._replace(
            max_wait_s=60.0, high_watermark=quorum.high_watermark
        )

        async def decide_and_look():
            quorum.submit(parked, answers.append)
            assert not answers
            decision = quorum.decide(adding("b"))
            decision.send(None)
            assert answers[0].records
            decision.close()

        member.disk.cold_probability = 0.0
        await stage.on(member, decide_and_look())

    play(story, count=1)
