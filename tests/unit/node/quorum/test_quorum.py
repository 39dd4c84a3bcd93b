"""Three members: they elect, decide, replicate, and survive what happens to them."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.log.log import batches_from
from strandline.node.quorum.quorum import ATTEMPTS_MAX, Quorum
from strandline.raft.messages import ReplicaKey, VoteRequest
from strandline.sim.faults import Fault
from strandline.sliced_work import STEPS_PER_TURN_MAX

from .stage import DIRECTORY, adding, play

SEEDS = range(1, 6)


def decided(stage, member, *names):
    """A decision under way on this member."""
    return stage.on(member, member.quorum.decide(adding(*names)))


async def code_of(task):
    with pytest.raises(KafkaError) as caught:
        await task
    return caught.value.code


def others(stage, member):
    return [other for other in stage.members if other is not member]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_decision_reaches_all(seed):
    async def story(stage):
        assert await stage.decide("a") == []
        assert await stage.decide("b", "c") == ["a"]
        await stage.agreed("abc")
        assert len({member.quorum.leader for member in stage.members}) == 1

    play(story, seed=seed)


def test_decisions_go_in_order_and_share_a_flush():
    async def story(stage):
        member = await stage.active()
        tasks = [decided(stage, member, name) for name in "abcdefgh"]
        seen = await asyncio.gather(*tasks)
        assert seen == [sorted("abcdefgh"[:i]) for i in range(8)]
        assert sorted(member.quorum.committed.topics) == list("abcdefgh")
        # One for what was there before, at most one for each flush under way meanwhile.
        assert len(member.applied) <= 5

    play(story)


def test_only_the_active_controller_decides():
    async def story(stage):
        member = await stage.active()
        for other in others(stage, member):
            assert await code_of(decided(stage, other, "a")) is ErrorCode.NOT_CONTROLLER
            assert other.quorum.leader == (member.quorum.raft.epoch, member.id)
            assert other.quorum.leader_address() == (f"n{member.id}", 9093)

    play(story)


@pytest.mark.parametrize("seed", SEEDS)
def test_when_the_leader_is_killed_another_one_goes_on_at_once(seed):
    async def story(stage):
        await stage.decide("a")
        first = await stage.active()
        killed_at = stage.world.now
        first.host.kill()
        assert await stage.decide("b") == ["a"]
        assert stage.world.now - killed_at < 0.6
        first.host.restart()
        await first.start()
        await stage.agreed("ab", stage.members)
        assert (await stage.active()) is not first

    play(story, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_that_is_cut_off_fails_what_it_could_not_commit_and_cuts_it_from_its_log(seed):
    async def story(stage):
        await stage.decide("a")
        first = await stage.active()
        stage.world.network.isolate(first.host.name)
        lost = decided(stage, first, "lost")
        read = stage.on(first, first.quorum.decide(lambda image: ([], sorted(image.topics))))
        await asyncio.sleep(0.01)
        assert sorted(first.quorum.tip.topics) == ["a", "lost"]
        await stage.until(lambda: any(m.quorum.is_active for m in others(stage, first)))
        assert await code_of(lost) is ErrorCode.NOT_CONTROLLER
        assert await code_of(read) is ErrorCode.NOT_CONTROLLER
        assert first.actives[-1] is None
        assert first.quorum.tip is first.quorum.committed
        await stage.decide("b")
        stage.world.network.heal_all()
        await stage.agreed("ab", stage.members)
        assert all("lost" not in image.topics for image in first.applied)

    play(story, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_answered_survives_a_power_loss_of_all(seed):
    async def story(stage):
        await stage.decide("a", "b")
        await stage.decide("c")
        for member in stage.members:
            member.host.power_loss()
        for member in stage.members:
            member.host.restart()
            await member.start()
        await stage.agreed("abc")
        await stage.decide("d")

    play(story, seed=seed)


@pytest.mark.parametrize("seed", range(1, 9))
def test_whatever_is_lost_what_was_answered_is_not(seed):
    """Power losses and kills of any member, one at a time and all at once, while decisions are made."""

    async def story(stage):
        answered, randomness = [], stage.world.faults

        async def client(number):
            i = 0
            while True:
                i += 1
                member = await stage.active()
                task = decided(stage, member, f"{number}-{i}")
                # The task of a member that dies never ends; whether it was decided is then not known.
                task.add_done_callback(asyncio.Task.exception)
                await asyncio.wait([task], timeout=1.0)
                if task.done() and task.exception() is None:
                    answered.append(f"{number}-{i}")

        async def nemesis():
            for _ in range(8):
                await asyncio.sleep(randomness.uniform(0.2, 1.5))
                struck = stage.members if randomness.random() < 0.4 else [randomness.choice(stage.members)]
                for member in struck:
                    member.host.power_loss() if randomness.random() < 0.7 else member.host.kill()
                await asyncio.sleep(randomness.uniform(0.0, 0.5))
                for member in struck:
                    member.host.restart()
                    await member.start()

        for member in stage.members:
            member.disk.sync_s = (0.001, 0.05)
        clients = [asyncio.create_task(client(i)) for i in range(3)]
        await nemesis()
        for task in clients:
            assert not task.done(), task
            task.cancel()
        await stage.decide("last")
        await stage.until(lambda: len({tuple(m.topics) for m in stage.members}) == 1)
        assert set(answered) <= set(stage.members[0].topics)
        assert len(answered) >= 5
        agree_on_committed(stage.members)

    play(story, seed=seed)


def agree_on_committed(members):
    """Every offset below the high watermark has the same batch everywhere."""
    found = {}
    for member in members:
        log = member.quorum.log
        for segment, position, header in batches_from(log, log.log_start_offset):
            if header.next_offset <= member.quorum.high_watermark:
                batch = segment.file.read_blocking(position, header.size_bytes)
                assert found.setdefault(header.base_offset, batch) == batch, header


def test_a_leader_that_stops_hands_over():
    async def story(stage):
        await stage.decide("a")
        first = await stage.active()
        began_at = stage.world.now
        await stage.on(first, first.stop())
        rest = others(stage, first)
        await stage.until(lambda: any(m.quorum.is_active for m in rest))
        assert stage.world.now - began_at < 0.15

    play(story)


def test_who_is_asked_before_it_takes_part_answers_when_it_does():
    async def story(stage):
        [member] = stage.members
        answers = []
        request = VoteRequest(ReplicaKey(1), 5, ReplicaKey(2), 4, 0, pre_vote=True)  # of no voter
        await stage.on(member, early(member, request, answers))
        await stage.until(lambda: answers)
        assert answers[0].error is ErrorCode.INCONSISTENT_VOTER_SET

    async def early(member, request, answers):
        opened = Quorum.open

        async def open_and_ask(quorum):
            await opened(quorum)
            quorum.submit(request, answers.append)
            assert not answers

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Quorum, "open", open_and_ask)
            await member.start()

    play(story, count=1, start=False)


# When a decision counts


@pytest.mark.parametrize(
    ("slow_leader", "slow_followers", "waits"), [(True, 0, False), (False, 1, False), (True, 1, True), (False, 2, True)]
)
def test_a_decision_counts_when_it_is_on_the_devices_of_a_majority(slow_leader, slow_followers, waits):
    async def story(stage):
        leader = await stage.active()
        followers = others(stage, leader)
        slow = [leader] * slow_leader + followers[:slow_followers]
        await stage.decide("a")
        await stage.agreed("a")
        for member in slow:
            member.disk.sync_s = (1.0, 1.0)
        began_at = stage.world.now
        await decided(stage, leader, "b")
        took_s = stage.world.now - began_at
        assert took_s >= 1.0 if waits else took_s < 0.5

    play(story)


def test_a_decision_alone_counts_when_it_is_on_the_device():
    async def story(stage):
        member = await stage.active()
        member.disk.sync_s = (1.0, 1.0)
        began_at = stage.world.now
        await decided(stage, member, "a")
        assert stage.world.now - began_at >= 1.0
        member.host.power_loss()
        member.host.restart()
        await member.start()
        await stage.agreed("a")

    play(story, count=1)


# Activation


def test_what_the_hook_decides_comes_first():
    async def story(stage):
        for member in stage.members:
            member.on_active = first_words
        await stage.start()
        member = await stage.active()
        assert await decided(stage, member, "a") == [f"epoch {member.quorum.raft.epoch}"]

    async def first_words(quorum, epoch):
        await asyncio.sleep(0.05)
        await quorum.decide(adding(f"epoch {epoch}"))

    play(story, start=False)


def test_a_new_leader_is_active_only_when_it_has_applied_what_came_before():
    async def story(stage):
        await stage.decide(*(f"t{i}" for i in range(300)))
        first = await stage.active()
        first.host.kill()
        second = await stage.active()
        assert second.quorum.committed is second.applied[-1]
        assert len(second.topics) == 300
        await stage.until(lambda: second.actives)
        assert second.actives == [second.quorum.raft.epoch]

    play(story)


# The disk


@pytest.mark.parametrize("fault", [Fault.SYNC_ERROR, Fault.WRITE_ERROR, Fault.FULL])
def test_a_failing_disk_ends_the_node_and_nothing_else(fault):
    async def story(stage):
        await stage.decide("a")
        first = await stage.active()
        first.disk.faults.set(f"{DIRECTORY}", fault)
        task = decided(stage, first, "b")
        with pytest.raises((OSError, KafkaError)):
            await task
        assert len(first.failures) == 1
        assert not first.quorum.is_active
        first.failures.clear()
        first.host.kill()
        await stage.decide("c")

    play(story)


def test_votes_wait_for_a_descriptor_and_no_node_ends():
    """SEC-L5: nobody can save its vote for a while."""

    async def story(stage):
        await stage.decide("a")
        first = await stage.active()
        others = [member for member in stage.members if member is not first]
        for member in others:
            member.disk.faults.set(f"{DIRECTORY}/quorum-state", Fault.NO_HANDLES)
        first.host.kill()
        await asyncio.sleep(5)
        assert not any(member.quorum.is_active or member.failures for member in others)
        for member in others:
            member.disk.faults.clear()
        await stage.decide("b")
        assert not any(member.failures for member in others)

    play(story)


def test_a_snapshot_waits_for_a_descriptor_and_no_node_ends():
    async def story(stage):
        [member] = stage.members
        member.disk.faults.set(f"{DIRECTORY}/0000", Fault.NO_HANDLES)
        await stage.decide(*(f"t{i}" for i in range(50)))
        await asyncio.sleep(5)
        assert not member.failures
        assert not checkpoints_of(member)
        member.disk.faults.clear()
        await stage.until(lambda: checkpoints_of(member))
        await stage.decide("b")

    def checkpoints_of(member):
        return [name for name in member.disk.listdir(DIRECTORY) if name.endswith(".checkpoint")]

    play(story, count=1, settings={"metadata.log.max.record.bytes.between.snapshots": "1000"})


def adding_in_slices(*names):
    """The same decision, pausing after each topic."""

    def decision(image):
        for _ in names:
            yield 0
        return adding(*names)(image)

    return decision


def test_a_decision_in_slices_holds_up_nothing_and_sees_what_was_decided_meanwhile():
    """A broker whose heartbeat had to wait for it would be taken for dead."""

    async def story(stage):
        member = await stage.active()
        leader = member.quorum.leader
        names = [f"t{i:05}" for i in range(3 * STEPS_PER_TURN_MAX)]
        long = stage.on(member, member.quorum.decide(adding_in_slices(*names)))
        await asyncio.sleep(0)
        assert await decided(stage, member, "a") == []
        assert not long.done()
        assert await long == ["a"]
        assert await decided(stage, member, "z") == ["a", *names]
        assert member.quorum.leader == leader
        await stage.agreed(["a", *names, "z"])

    play(story)


def test_a_decision_in_slices_comes_to_an_end_whatever_is_decided_meanwhile():
    async def story(stage):
        member = await stage.active()
        names = [f"t{i:05}" for i in range(2 * STEPS_PER_TURN_MAX)]
        meanwhile = []

        def decision(image):
            meanwhile.append(decided(stage, member, f"other-{len(meanwhile)}"))
            return (yield from adding_in_slices(*names)(image))

        seen = await stage.on(member, member.quorum.decide(decision))
        assert len(meanwhile) == ATTEMPTS_MAX
        assert seen == [f"other-{i}" for i in range(ATTEMPTS_MAX - 1)], "the last one waited"
        await asyncio.gather(*meanwhile)
        assert len(member.quorum.tip.topics) == len(names) + ATTEMPTS_MAX

    play(story)


def test_a_decision_in_slices_is_refused_when_leadership_goes_meanwhile():
    async def story(stage):
        await stage.decide("a")
        first = await stage.active()

        def endless(image):
            while True:
                yield 0

        lost = stage.on(first, first.quorum.decide(endless))
        waits = decided(stage, first, "b")
        await asyncio.sleep(0)
        stage.on(first, first.quorum.resign_and_close())
        assert await code_of(lost) is ErrorCode.NOT_CONTROLLER
        assert await code_of(waits) is ErrorCode.NOT_CONTROLLER
        assert all("b" not in member.topics for member in others(stage, first))

    play(story)


def read_above_high_watermark(quorum):
    quorum._high_watermark -= 1


def tip_of_no_epoch(quorum):
    quorum._active_epoch = None


def active_in_another_epoch(quorum):
    quorum._active_epoch += 1


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (read_above_high_watermark, "above"),
        (tip_of_no_epoch, "a tip, and active in epoch None"),
        (active_in_another_epoch, "active in epoch"),
    ],
)
def test_what_must_hold_is_checked(broken, problem):
    async def story(stage):
        await stage.decide("a")
        quorum = (await stage.active()).quorum
        for member in stage.members:
            member.quorum.check_invariants()
        kept = quorum._high_watermark, quorum._active_epoch
        broken(quorum)
        with pytest.raises(AssertionError, match=problem):
            quorum.check_invariants()
        quorum._high_watermark, quorum._active_epoch = kept

    play(story)
