"""Raft's requests between nodes: to those of whom only an address is known, on connections that do not hold each other up."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio
import json

from strandline.errors import ErrorCode
from strandline.raft.messages import Address, AddVoterRequest, RemoveVoterRequest, ReplicaKey
from strandline.raft.voters import VoterSet

from .stage import Member, directory_id, play
from .test_restart import DYNAMIC, formatted, voter


async def asked(stage, request):
    """What the leader answers to a request of a person."""
    leader = await stage.active()
    answers = []
    leader.host.spawn(submitted(leader, request, answers))
    await stage.until(lambda: answers)
    return answers[0]


async def submitted(member, request, answers):
    member.quorum.submit(request, answers.append)


def formatted_stage(story):
    async def main(stage):
        for member in stage.members:
            formatted(member, VoterSet([voter(1), voter(2), voter(3)]))
        await stage.start()
        await story(stage)

    play(main, settings=DYNAMIC, start=False)


def test_a_node_that_knows_only_addresses_finds_the_leader():
    async def story(stage):
        await stage.decide("a")
        broker = Member(stage, 7, roles="broker")
        await broker.start()
        await stage.agreed("a", [broker])
        assert broker.quorum.raft.voters == VoterSet([voter(1), voter(2), voter(3)])

    formatted_stage(story)


def test_a_controller_becomes_a_voter_and_stops_being_one():
    async def story(stage):
        await stage.decide("a")
        fourth = Member(stage, 4)
        stage.members.append(fourth)
        await fourth.start()
        await stage.agreed("a")
        add = AddVoterRequest(ReplicaKey(4, directory_id(4)), {"CONTROLLER": Address("n4", 9093)}, 10.0)
        assert (await asked(stage, add)).error is ErrorCode.NONE
        await stage.until(lambda: all(member.quorum.raft.voters.ids == [1, 2, 3, 4] for member in stage.members))
        leader = await stage.active()
        removed = await asked(stage, RemoveVoterRequest(leader.quorum.raft.voters.get(leader.id).key))
        assert removed.error is ErrorCode.NONE
        await stage.until(lambda: any(m.quorum.is_active for m in stage.members if m is not leader))
        await stage.decide("b")
        await stage.agreed("ab")
        assert sorted(leader.quorum.raft.voters.ids) == sorted({1, 2, 3, 4} - {leader.id})
        for member in stage.members:
            member.host.power_loss()
        for member in stage.members:
            member.host.restart()
            await member.start()
        await stage.decide("c")
        await stage.agreed("abc")

    formatted_stage(story)


def test_a_vote_does_not_wait_behind_a_parked_fetch():
    async def story(stage):
        await stage.decide("a")
        leader = await stage.active()
        await asyncio.sleep(0.01)
        follower = next(member for member in stage.members if member is not leader)
        before = json.loads(follower.text("quorum-state"))["leaderEpoch"]
        began_at = stage.world.now
        leader.host.kill()
        await stage.until(lambda: follower.quorum.leader[0] > before and follower.quorum.leader[1] >= 0)
        assert stage.world.now - began_at < 0.4

    play(story)
