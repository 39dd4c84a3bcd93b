"""min-insync: with acks=all and min.insync.replicas=2, three replicas survive one failure, and refuse to lose at two (S23)."""

from __future__ import annotations

from strandline.stories.nodes import StageNode
from strandline.stories.registry import story
from strandline.stories.request_counter import PRODUCE
from strandline.stories.stage import Stage


@story(
    "min-insync",
    en="min.insync.replicas=2: one broker of three may die; with two dead the leader would rather refuse than risk a loss",
    ko="min.insync.replicas=2: 세 대 중 한 대의 장애는 견디고, 두 대가 죽으면 유실을 감수하지 않고 쓰기를 거절한다",
)
async def min_insync(stage: Stage) -> None:
    await stage.open(min_isr=2)
    leader = stage["101"]
    stage.pin("acks", "all")

    await stage.send("M1")
    await stage.settle()
    stage.narrate(
        "The notes' recipe against loss: replication.factor 3, acks=all, min.insync.replicas 2. M1 is on all three.",
        "노트의 '데이터 유실이 없게 하려면' 설정이다. replication.factor 3, acks=all, min.insync.replicas 2. M1은 셋 모두에 있다.",
    )

    stage.kill("103")
    await stage.until(lambda: "103" not in stage.isr)
    await stage.send("M2")
    stage.narrate(
        "103 dies. The ISR is 101 and 102, two are enough: M2 is committed and acknowledged. n-2 failures are survived, "
        "here one of three.",
        "103이 죽는다. ISR은 101과 102, 두 개면 충분하다. M2는 커밋되고 응답을 받는다. n-2개, 즉 3대 중 1대의 장애를 견딘다.",
    )

    stage.kill("102")
    await stage.until(lambda: stage.isr == ["101"] and _knows_to_be_alone(leader))
    m3 = await stage.send_soon("M3")
    await stage.until(lambda: stage.requests("producer", "101", PRODUCE) > 3)
    stage.point(leader.end == 2 and not m3.is_over, "M3 is not written", "M3는 저장되지 않는다")
    stage.note_of("producer", "M3: NOT_ENOUGH_REPLICAS, tries again", "M3: NOT_ENOUGH_REPLICAS, 재시도")
    stage.narrate(
        "102 dies too. The ISR is 101 alone, less than min.insync.replicas: M3 is refused with NotEnoughReplicas "
        "and nothing is written, for what only 101 has would be lost with 101. The producer tries again.",
        "102도 죽는다. ISR은 101뿐이라 min.insync.replicas보다 적다. M3는 NotEnoughReplicas로 거절되고 아무것도 저장되지 않는다. "
        "101만 가진 메시지는 101과 함께 유실될 수 있기 때문이다. 프로듀서는 재시도한다.",
    )

    read = await stage.read()
    stage.point(read == ["M1", "M2"], "what is committed can be read", "커밋된 메시지는 읽을 수 있다")
    stage.narrate(
        "Reading goes on: what was committed is there. Only writing with acks=all has stopped.",
        "읽기는 계속된다. 커밋된 메시지는 그대로 있고, acks=all 쓰기만 멈췄다.",
    )

    stage.restart("102")
    await stage.until(lambda: m3.is_over)
    stage.narrate(
        "102 returns, catches up and joins the ISR: two again. The next try of M3 is written, copied and acknowledged.",
        "102가 돌아와 따라잡고 ISR에 들어온다. 다시 두 개다. 재시도한 M3가 저장, 복제되고 응답을 받는다.",
    )

    stage.restart("103")
    await stage.settle()
    read = await stage.read("consumer B")
    stage.narrate(
        "103 returns as well. Every acknowledged message is on all three, each once.",
        "103도 돌아온다. 응답받은 모든 메시지가 세 브로커에 한 번씩 있다.",
    )
    stage.point(
        m3.is_acknowledged
        and read == ["M1", "M2", "M3"]
        and all(node.names == read for node in stage.brokers.values()),
        "With min.insync.replicas=2 of three, one failure is not noticed; at two, acks=all is refused instead of losing.",
        "복제본 3개에 min.insync.replicas=2이면 장애 하나는 그대로 견디고, 둘이면 유실하는 대신 쓰기를 거절한다.",
    )


def _knows_to_be_alone(leader: StageNode) -> bool:
    """The new ISR has reached the leader: what comes now is refused before it is written."""
    replica = leader.replica()
    return replica is not None and replica.isr == (leader.id,)
