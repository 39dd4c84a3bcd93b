"""lag-by-messages: why a follower is judged by time and not by how many messages it is behind (S8)."""

from __future__ import annotations

import asyncio

from strandline.sim.network import NetworkLink
from strandline.stories.disabled_mechanisms import LAG_MESSAGES_MAX
from strandline.stories.frames import BilingualText
from strandline.stories.nodes import StageNode
from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.request_counter import PRODUCE
from strandline.stories.stage import Stage

FAR = NetworkLink(latency_s=0.35, jitter_s=0.0, spike_probability=0.0)
"""A fetch and its answer take 0.7 s: at 3 messages a second a follower is never 5 behind, at 10 it always is."""
LOOK_EVERY_S = 5.0
"""Twice in replica.lag.time.max.ms the leader checks for late followers, counted from second 0, when all nodes start."""


@story(
    "lag-by-messages",
    en="A burst of messages makes healthy followers look out of sync; counting time instead of messages does not",
    ko="메시지 유입량이 갑자기 늘면 정상인 팔로워가 OSR로 판단되고, 시간으로 판단하면 ISR에 남는다",
    options=(Option.LAG_BY_MESSAGES,),
    note=BilingualText(
        "The time that counts is that since the follower last had everything, not since it last sent a fetch; and since ZooKeeper "
        "is gone, the leader reports the new ISR to the controller (AlterPartition).",
        "기준 시간은 마지막 가져오기 요청이 아니라 팔로워가 마지막으로 리더를 따라잡은 때부터 잰다. "
        "또 주키퍼가 없으므로 리더는 바뀐 ISR을 컨트롤러에게 알린다(AlterPartition).",
    ),
)
async def lag_by_messages(stage: Stage) -> None:
    await stage.open(brokers=("101", "102", "103"), min_isr=2)
    leader, followers = stage["101"], [stage["102"], stage["103"]]
    by_messages = stage.has(Option.LAG_BY_MESSAGES)
    if by_messages:
        stage.pin("replica.lag.max.messages", LAG_MESSAGES_MAX)
    else:
        stage.pin("replica.lag.time.max.ms", 10_000)
    stage.pin("acks", 1)
    for follower in followers:
        stage.world.network.set_link(leader.host, follower.host, FAR)
        stage.world.network.set_link(follower.host, leader.host, FAR)
    stage.narrate(
        "101 leads, 102 and 103 are far away: a fetch and its answer take 0.7 s. "
        + (
            f"In this world a follower is out of sync when it is more than {LAG_MESSAGES_MAX} messages behind."
            if by_messages
            else "A follower is out of sync when it has not caught up with the leader for 10 s."
        ),
        "101이 리더이고 102와 103은 멀리 있어 가져오기 한 번에 0.7초가 걸린다. "
        + (
            f"이 세계에서는 메시지가 {LAG_MESSAGES_MAX}개보다 많이 밀린 팔로워를 OSR로 판단한다."
            if by_messages
            else "팔로워가 10초 동안 리더를 따라잡지 못하면 OSR로 판단한다."
        ),
    )

    await _so_long_before_a_look(stage, 1.0)
    await _send(stage, range(1, 7), per_s=3)
    _acknowledged(stage, 1, 6)
    stage.point(len(stage.isr) == 3, "3 msg/s: all is well", "초당 3개면 정상이다")
    stage.narrate(
        "Messages come at a steady 3 msg/s, M1 to M6. The followers are a few messages behind, never more than "
        f"{LAG_MESSAGES_MAX}: all three stay in the ISR, whichever way one counts.",
        "M1부터 M6까지 메시지가 초당 3개로 일정하게 들어온다. "
        f"팔로워는 몇 개 늦을 뿐 {LAG_MESSAGES_MAX}개를 넘지 않는다. 어느 기준으로 보아도 셋 모두 ISR에 있다.",
    )

    await _so_long_before_a_look(stage, 1.7)
    burst = asyncio.ensure_future(_send(stage, range(7, 27), per_s=10))
    await stage.wait(1.45)
    _acknowledged(stage, 7, leader.end)
    lag = _lag(leader)
    stage.point(lag > LAG_MESSAGES_MAX, "the burst is longer than the lag allowed", "유입량이 허용 지연보다 많다")
    stage.narrate(
        "Then a burst, from M7 on at 10 msg/s. The followers work exactly as before, a fetch every 0.7 s, "
        f"but more messages arrive between two fetches: by the offsets of their last fetches they are {lag} behind.",
        "그러다 M7부터는 초당 10개로 유입량이 갑자기 늘어난다. 팔로워는 전과 똑같이 0.7초마다 가져오지만, "
        f"그 사이에 쌓이는 메시지가 많아 마지막 가져오기의 오프셋으로 보면 {lag}개 늦다.",
    )

    fetches = [stage.requests(follower.name, "101") for follower in followers]
    if by_messages:
        await _put_out(stage, burst)
    else:
        await burst
        stage.clients.words()
        stage.point(
            len(stage.isr) == 3,
            "the burst removes no follower from the ISR",
            "유입량이 늘어도 ISR에서 빠지는 팔로워가 없다",
        )
        stage.narrate(
            "The leader checks its followers: 102 and 103 had everything there was a moment ago, and 10 s are allowed. Both stay.",
            "리더가 늦은 팔로워를 찾는다. 102와 103은 조금 전에 그때까지의 메시지를 모두 가졌고, 10초까지 허용된다. "
            "둘 다 ISR에 남는다.",
        )
    healthy = all(
        stage.requests(follower.name, "101") > before for follower, before in zip(followers, fetches, strict=True)
    )

    await stage.settle()
    stage.narrate(
        "The burst is over, the followers have everything"
        + (" and are taken back in. Nothing was ever wrong with them." if by_messages else "."),
        "유입이 잦아들고 팔로워가 모두 따라잡았다. "
        + (
            "다시 ISR로 돌아온다. 팔로워에게는 처음부터 아무 문제가 없었다."
            if by_messages
            else "ISR은 한 번도 바뀌지 않았다."
        ),
    )
    if by_messages:
        stage.point(
            healthy and stage.requests("producer2", "101", PRODUCE) > 1,
            "Counted by messages, healthy followers become OSR in a burst: needless errors, and needless retries.",
            "메시지 수로 판단하면 유입량이 늘 때 정상인 팔로워가 OSR이 되어, 불필요한 에러와 재시도를 일으킨다.",
        )
    else:
        state = stage.state()
        stage.point(
            healthy and state is not None and state.partition_epoch == 0 and len(stage.isr) == 3,
            "Judged by replica.lag.time.max.ms, a burst changes nothing: the ISR was the same throughout.",
            "replica.lag.time.max.ms로 판단하면 유입량이 늘어도 ISR은 처음부터 끝까지 그대로다.",
        )


def _lag(leader: StageNode) -> int:
    """How many messages the slowest follower lacks, as far as its leader knows."""
    replica = leader.replica()
    assert replica is not None
    return leader.end - min(follower.log_end_offset for follower in replica.followers.values())


async def _so_long_before_a_look(stage: Stage, seconds: float) -> None:
    await stage.wait((-seconds - stage.world.now) % LOOK_EVERY_S)


async def _send(stage: Stage, numbers: range, *, per_s: int) -> None:
    for number in numbers:
        await stage.send_soon(f"M{number}", acks=1)
        await stage.wait(1 / per_s)


def _acknowledged(stage: Stage, first: int, last: int) -> None:
    """One word instead of one for each."""
    stage.clients.words()
    stage.note_of("producer", f"M{first} to M{last} acknowledged", f"M{first}~M{last} ack 수신")


async def _put_out(stage: Stage, burst: asyncio.Future[None]) -> None:
    await stage.until(lambda: len(stage.isr) == 1)
    stage.clients.words()
    stage.narrate(
        f"The leader checks its followers: both are more than {LAG_MESSAGES_MAX} messages behind, so both become OSR, "
        "although they fetch as they always did.",
        f"리더가 늦은 팔로워를 찾는다. 둘 다 {LAG_MESSAGES_MAX}개 넘게 밀려 있어, 평소처럼 가져오고 있는데도 OSR이 된다.",
    )
    refused = await stage.send_soon("M27", client="producer2")
    await stage.until(lambda: stage.requests("producer2", "101", PRODUCE) > 1)
    stage.point(not refused.is_over, "the producer has to try again", "프로듀서는 다시 시도해야 한다")
    stage.clients.words()
    stage.note_of("producer2", "M27: NOT_ENOUGH_REPLICAS, tries again", "M27: NOT_ENOUGH_REPLICAS, 재시도")
    stage.narrate(
        "Another producer, which asks for acks=all, is refused: one replica in sync, and min.insync.replicas is 2. It tries again.",
        "acks=all로 보내는 다른 프로듀서는 거절당한다. 동기화된 복제본은 하나인데 min.insync.replicas는 2이다. 다시 시도한다.",
    )
    await stage.until(lambda: refused.is_over and burst.done())
    stage.clients.words()
    stage.note_of("producer2", "M27 acknowledged", "M27 ack 수신")
