"""Wishes for other ISRs reach the controller, in as few requests as can be, until it has decided."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.config.dynamic import DynamicConfig
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.node.controller_channel import ControllerChannel
from strandline.node.isr_updates import IsrUpdates, WaitingProposals, request
from strandline.node.peers import Peers
from strandline.raft.messages import Address
from strandline.replica.isr_state import IsrAnswer, ProposedIsr
from strandline.sim.world import World
from strandline.wire import messages

from .scripted import HANG_UP, SILENCE, Controller, config_of, quiet_logger

ALTER = 56
Reply = messages.response(ALTER)
TOPIC = Uuid(bytes(15) + b"\7")


class Leader:
    """A partition that writes down what it is told. Nothing of its log matters here."""

    def __init__(self, index: int, leader_epoch: int = 3) -> None:
        self.index = index
        self.leader_epoch = leader_epoch
        self.leads, self.offline, self.gone = True, False, False
        self.answers: list[tuple[ProposedIsr, IsrAnswer | ErrorCode]] = []
        self.on_answered: Callable[[], None] = lambda: None

    def wish(self, *isr: int, partition_epoch: int = 5) -> ProposedIsr:
        members = tuple((replica, 40 + replica) for replica in isr)
        return ProposedIsr(TOPIC, self.index, self.leader_epoch, partition_epoch, members, 0, "for a test")

    def isr_answered(self, wish: ProposedIsr, answer: IsrAnswer | ErrorCode) -> None:
        self.answers.append((wish, answer))
        self.on_answered()


class Stage:
    def __init__(self) -> None:
        self.controller = Controller({ALTER: grant})
        self.broker_epoch = 9
        self.failures: list[BaseException] = []
        self.updates: IsrUpdates

    def submit(self, leader: Leader, wish: ProposedIsr) -> None:
        self.updates.submit(leader, wish)  # type: ignore[arg-type]

    @property
    def requests(self) -> list[Any]:
        return self.controller.requests(ALTER)

    def script(self, *replies: Any, then: Callable[[Any], Any] | None = None) -> None:
        """Answer with these first, then as ever."""
        left = list(replies)

        def reply(asked: Any) -> Any:
            return left.pop(0) if left else (then or grant)(asked)

        self.controller.scripts[ALTER] = reply

    def ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)


def grant(asked: Any, code: int = 0, **fields: Any) -> Any:
    return Reply(
        topics=[
            Reply.TopicData(
                topic_id=topic.topic_id,
                partitions=[
                    Reply.PartitionData(
                        partition_index=one.partition_index,
                        **(
                            {"error_code": code}
                            if code
                            else {
                                "leader_id": 1,
                                "leader_epoch": one.leader_epoch,
                                "isr": [member.broker_id for member in one.new_isr_with_epochs],
                                "partition_epoch": one.partition_epoch + 1,
                                **fields,
                            }
                        ),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in asked.topics
        ]
    )


def asked_for(asked: Any) -> dict[int, list[int]]:
    return {
        one.partition_index: [member.broker_id for member in one.new_isr_with_epochs]
        for topic in asked.topics
        for one in topic.partitions
    }


def play(story: Callable[[Stage], Coroutine[Any, Any, None]]) -> Stage:
    with World(1) as world:
        stage, node = Stage(), world.node("b1")

        async def body() -> None:
            config = config_of()
            peers = Peers(
                DynamicConfig(config), node.clock, node.randomness, quiet_logger(), lambda node_id, purpose: None
            )
            leader = (1, 1, Address("c1", 9093))
            channel = ControllerChannel(peers, lambda: leader, config, node.randomness, quiet_logger())
            stage.updates = IsrUpdates(
                channel, 1, lambda: stage.broker_epoch, node.randomness, quiet_logger(), stage.ended
            )
            await story(stage)
            await stage.updates.close()
            await peers.close()

        async def main() -> None:
            await world.node("c1").spawn(stage.controller.serve())
            await node.spawn(body())

        world.run(main())
        assert not stage.failures
        return stage


def test_a_wish_is_sent_with_broker_epochs_and_answered():
    async def story(stage: Stage) -> None:
        leader = Leader(0)
        stage.submit(leader, wish := leader.wish(1, 2))
        await asyncio.sleep(1)
        assert leader.answers == [(wish, IsrAnswer(1, 3, (1, 2), 0, 6))]

    [asked] = play(story).requests
    assert (asked.broker_id, asked.broker_epoch) == (1, 9)
    [partition] = asked.topics[0].partitions
    assert [(m.broker_id, m.broker_epoch) for m in partition.new_isr_with_epochs] == [(1, 41), (2, 42)]
    assert (partition.leader_epoch, partition.partition_epoch) == (3, 5)


def test_an_older_controller_is_told_without_broker_epochs():
    leader = Leader(0)
    body = messages.encode_request(ALTER, 2, request(1, 9, [leader.wish(1, 2)]))
    [topic] = messages.decode_request(ALTER, 2, body, 0).topics
    assert topic.partitions[0].new_isr == [1, 2]


def test_all_that_waits_goes_in_one_request_and_one_is_in_flight_at_a_time():
    async def story(stage: Stage) -> None:
        leaders = [Leader(index) for index in range(50)]
        for leader in leaders[:10]:
            stage.submit(leader, leader.wish(1))
        await asyncio.sleep(0)
        for leader in leaders[10:]:
            stage.submit(leader, leader.wish(1))
        await asyncio.sleep(1)
        assert all(len(leader.answers) == 1 for leader in leaders)

    assert [len(asked_for(asked)) for asked in play(story).requests] == [10, 40]


def test_of_two_wishes_that_wait_the_newer_is_sent():
    async def story(stage: Stage) -> None:
        leader, other = Leader(0), Leader(1)
        stage.submit(other, other.wish(1))
        await asyncio.sleep(0)  # the first is on its way
        stage.submit(leader, leader.wish(1))
        stage.submit(leader, newer := leader.wish(1, 2))
        await asyncio.sleep(1)
        assert [wish for wish, _ in leader.answers] == [newer]

    assert [asked_for(asked) for asked in play(story).requests] == [{1: [1]}, {0: [1, 2]}]


def test_a_newer_wish_takes_the_place_of_one_that_was_sent_in_vain():
    async def story(stage: Stage) -> None:
        leader = Leader(0)
        stage.script(Reply(error_code=ErrorCode.STALE_BROKER_EPOCH))
        stage.submit(leader, leader.wish(1))
        await asyncio.sleep(0)
        stage.submit(leader, newer := leader.wish(1, 2, partition_epoch=6))
        await asyncio.sleep(1)
        assert [wish for wish, _ in leader.answers] == [newer]

    assert [asked_for(asked) for asked in play(story).requests] == [{0: [1]}, {0: [1, 2]}]


def stop_leading(leader: Leader) -> None:
    leader.leads = False


def next_epoch(leader: Leader) -> None:
    leader.leader_epoch += 1


def fail(leader: Leader) -> None:
    leader.offline = True


def vanish(leader: Leader) -> None:
    leader.gone = True


@pytest.mark.parametrize("change", [stop_leading, next_epoch, fail, vanish])
def test_one_who_leads_no_more_is_not_sent(change):
    async def story(stage: Stage) -> None:
        leader, other = Leader(0), Leader(1)
        stage.script(Reply(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        for each in (leader, other):
            stage.submit(each, each.wish(1))
        await asyncio.sleep(0)
        change(leader)
        await asyncio.sleep(1)
        assert leader.answers == []
        assert len(other.answers) == 1

    assert [sorted(asked_for(asked)) for asked in play(story).requests] == [[0, 1], [1]]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(error_code=ErrorCode.STALE_BROKER_EPOCH),
        Reply(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED),
        Reply(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        Reply(error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
        Reply(error_code=ErrorCode.NOT_CONTROLLER),
        Reply(topics=[]),
        HANG_UP,
        SILENCE,
    ],
)
def test_what_came_to_nothing_is_sent_again_with_the_epoch_of_then(reply):
    async def story(stage: Stage) -> None:
        leader = Leader(0)
        stage.script(reply)
        stage.submit(leader, wish := leader.wish(1, 2))
        await asyncio.sleep(0)
        stage.broker_epoch = 10
        await asyncio.sleep(60)
        assert leader.answers == [(wish, IsrAnswer(1, 3, (1, 2), 0, 6))]

    first, second = play(story).requests
    assert asked_for(first) == asked_for(second)
    # The channel itself goes on to the next controller, with the very same request.
    sent_by_channel = reply is HANG_UP or getattr(reply, "error_code", 0) == ErrorCode.NOT_CONTROLLER
    assert (first.broker_epoch, second.broker_epoch) == (9, 9 if sent_by_channel else 10)


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT]
)
def test_a_partition_of_which_the_controller_knows_less_is_sent_again(code):
    async def story(stage: Stage) -> None:
        leader, other = Leader(0), Leader(1)

        def first(asked: Any) -> Any:
            reply = grant(asked)
            reply.topics[0].partitions[0].error_code = code
            stage.controller.scripts[ALTER] = grant
            return reply

        stage.controller.scripts[ALTER] = first
        for each in (leader, other):
            stage.submit(each, each.wish(1))
        await asyncio.sleep(1)
        assert [len(each.answers) for each in (leader, other)] == [1, 1]
        assert isinstance(leader.answers[0][1], IsrAnswer)

    assert [sorted(asked_for(asked)) for asked in play(story).requests] == [[0, 1], [0]]


def test_an_answer_with_a_recovery_state_that_nobody_knows_is_none():
    async def story(stage: Stage) -> None:
        leader = Leader(0)
        stage.controller.scripts[ALTER] = lambda asked: grant(asked, leader_recovery_state=7)
        stage.submit(leader, leader.wish(1))
        await asyncio.sleep(0.5)
        assert not leader.answers
        stage.controller.scripts[ALTER] = grant
        await asyncio.sleep(2)
        assert len(leader.answers) == 1

    play(story)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
def test_a_decision_against_it_is_told_and_nothing_is_sent_again(code):
    async def story(stage: Stage) -> None:
        leader = Leader(0)
        stage.controller.scripts[ALTER] = lambda asked: grant(asked, code)
        stage.submit(leader, wish := leader.wish(1, 2))
        await asyncio.sleep(5)
        assert leader.answers == [(wish, code)]

    assert len(play(story).requests) == 1


def test_a_wish_that_an_answer_brings_about_is_sent_too():
    async def story(stage: Stage) -> None:
        leader = Leader(0)
        leader.on_answered = lambda: (
            stage.submit(leader, leader.wish(1, partition_epoch=6)) if len(leader.answers) == 1 else None
        )
        stage.submit(leader, leader.wish(1, 2))
        await asyncio.sleep(1)
        assert len(leader.answers) == 2

    play(story)


def test_a_wish_is_sent_whenever_it_comes():
    """Also just when the one before is done."""

    async def story(stage: Stage) -> None:
        for turns in range(6):
            leader = Leader(0)
            answered = asyncio.Event()
            leader.on_answered = answered.set
            stage.submit(leader, leader.wish(1))
            await answered.wait()
            for _ in range(turns):
                await asyncio.sleep(0)

    assert len(play(story).requests) == 6


def test_a_controller_that_is_in_trouble_is_asked_less_and_less_often():
    async def story(stage: Stage) -> None:
        leader = Leader(0)
        stage.controller.scripts[ALTER] = lambda asked: Reply(error_code=ErrorCode.STALE_BROKER_EPOCH)
        stage.submit(leader, leader.wish(1))
        await asyncio.sleep(1)
        assert 4 <= len(stage.requests) <= 8
        before = len(stage.requests)
        await asyncio.sleep(20)
        assert 20 / IsrUpdates.backoff_max_s * 0.9 <= len(stage.requests) - before <= 20 / IsrUpdates.backoff_max_s * 2

    play(story)


def test_once_closed_nobody_is_told_anything():
    async def story(stage: Stage) -> None:
        leader = Leader(0)
        stage.controller.scripts[ALTER] = lambda asked: SILENCE
        stage.submit(leader, leader.wish(1))
        await asyncio.sleep(1)
        await stage.updates.close()
        stage.submit(leader, leader.wish(1, 2))
        await asyncio.sleep(60)
        assert not leader.answers

    assert len(play(story).requests) == 1


@pytest.mark.parametrize(("count", "isr"), [(40_000, (1, 2, 3)), (2_000, tuple(range(100)))])
def test_as_many_wishes_go_with_one_request_as_a_controller_decodes(count: int, isr: tuple[int, ...]):
    """They would be refused as a whole, and sent again, for ever."""
    wishes, sent = WaitingProposals(), []
    leaders = [Leader(index) for index in range(count)]
    for leader in leaders:
        wishes.add(leader, leader.wish(*isr))  # type: ignore[arg-type]
    for leader in leaders[: count // 2]:
        leader.leads = leader.index % 2 == 0
    while taken := wishes.take():
        message = request(1, 9, [wish for _, wish in taken.values()])
        read = messages.decode_request(ALTER, 3, messages.encode_request(ALTER, 3, message))
        sent += asked_for(read)
    assert sent == [leader.index for leader in leaders if leader.leads]


def test_wishes_that_are_sent_in_vain_let_the_others_go_first():
    async def story(stage: Stage) -> None:
        leaders = [Leader(index) for index in range(7_000)]
        for leader in leaders:
            stage.submit(leader, leader.wish(1, 2))
        stage.script(Reply(error_code=ErrorCode.STALE_BROKER_EPOCH))
        await asyncio.sleep(10)
        assert all(len(leader.answers) == 1 for leader in leaders)

    sizes = [len(asked_for(asked)) for asked in play(story).requests]
    assert sizes == [5_000, 5_000, 2_000]
