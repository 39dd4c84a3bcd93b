"""acks-one-loss: an ack of the leader alone is worth as much as the leader (S21)."""

from __future__ import annotations

from strandline.client.config import ACKS_ALL
from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.scenarios.replica_recovery import lose_the_leader
from strandline.stories.stage import Stage


@story(
    "acks-one-loss",
    en="acks=1 is at most once: M4 was acknowledged and is lost; with acks=all the producer sends it again",
    ko="acks=1은 at most once: ack를 받은 M4가 유실된다. acks=all이면 프로듀서가 다시 보낸다",
    options=(Option.ACKS_ONE,),
)
async def acks_one_loss(stage: Stage) -> None:
    acks_one = stage.has(Option.ACKS_ONE)
    m3, m4 = await lose_the_leader(stage, acks=1 if acks_one else ACKS_ALL)
    y = stage["Y"]
    stage.point(m4.is_acknowledged == acks_one, "who has an ack does not retry", "ack를 받으면 재시도하지 않는다")

    stage.release()
    if acks_one:
        stage.lost("M4", "acknowledged, but in no live log", "ack를 보냈지만 남은 로그에 없다")
        stage.narrate(
            "The producer has an ack for M3 and for M4, so it sends neither again. Y has M3 by luck; M4 was on X only.",
            "프로듀서는 M3와 M4의 ack를 모두 받았으므로 재시도하지 않는다. M3는 다행히 Y가 복제했지만 M4는 X에만 있었다.",
        )
    else:
        await stage.until(lambda: y.end == 4)
        stage.narrate(
            "The producer has no ack for M3 and M4 and sends both again, to Y. Y recognises M3 by its sequence number "
            "and appends M4 at offset 3.",
            "M3와 M4에 대한 ack를 받지 못한 프로듀서가 둘 다 Y로 재시도한다. Y는 시퀀스 번호로 M3를 알아보고, "
            "M4를 3번 오프셋에 저장한다.",
        )
        await stage.until(lambda: m3.is_over and m4.is_over)

    stage.restart("X")
    await stage.settle()
    read = await stage.read()
    held = stage["X"].names
    stage.narrate(
        "X returns and follows Y. In Y's log epoch 0 ends behind M3, so X cuts its own M4"
        + (", the last copy there was." if acks_one else " and copies the one that Y has."),
        "X가 복구되어 Y의 팔로워가 된다. Y의 로그에서 에포크 0은 M3까지이므로 X는 자신의 M4를 지"
        + ("운다. 마지막 복사본이었다." if acks_one else "우고 Y의 M4를 복제한다."),
    )
    if acks_one:
        stage.point(
            m4.is_acknowledged and held == read == ["M1", "M2", "M3"],
            "With acks=1 exactly M4 is lost: the leader acknowledged it alone, and the producer never sent it again.",
            "acks=1이면 정확히 M4가 유실된다. 리더만 저장하고 ack를 보냈기에 프로듀서는 다시 보내지 않는다.",
        )
    else:
        stage.point(
            m3.is_acknowledged and m4.is_acknowledged and held == read == ["M1", "M2", "M3", "M4"],
            "With acks=all there was no ack before all in the ISR had the message, so the producer tried again: nothing is lost.",
            "acks=all이면 ISR 모두가 저장하기 전에는 ack가 없으므로 프로듀서가 재시도한다. 아무것도 유실되지 않는다.",
        )
