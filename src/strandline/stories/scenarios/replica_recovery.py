"""The start that the stories of X, Y and Z share: X dies when M3 is on Y only and M4 nowhere else.

Always true when it is over: Y leads in leader epoch 1, Z has what Y has, and nothing of the producer has reached Y so far.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.client.config import ACKS_ALL
from strandline.stories.clients import SentMessage
from strandline.stories.stage import Stage

BROKERS = ("X", "Y", "Z")


class Unsure(NamedTuple):
    """The two messages that were not committed when X died."""

    m3: SentMessage
    m4: SentMessage


async def lose_the_leader(stage: Stage, *, acks: int = ACKS_ALL, idempotent: bool = True) -> Unsure:
    await stage.open(brokers=BROKERS)
    stage.pin("acks", "all" if acks == ACKS_ALL else acks)
    stage.pin("enable.idempotence", str(idempotent and acks == ACKS_ALL).lower())
    await stage.send("M1", "M2", acks=acks, idempotent=idempotent)
    await stage.settle()
    stage.narrate(
        "X leads, Y and Z follow; the leader epoch is 0. M1 and M2 are on all three and committed.",
        "X가 리더, Y와 Z가 팔로워이고 리더에포크는 0이다. M1과 M2는 세 브로커에 모두 있고 커밋되었다.",
    )
    m3 = await _copied_to_y_only(stage, acks, idempotent)
    m4 = await _on_the_leader_only(stage, acks, idempotent)
    await _elect_y(stage, acks)
    return Unsure(m3, m4)


async def _copied_to_y_only(stage: Stage, acks: int, idempotent: bool) -> SentMessage:
    x, y = stage["X"], stage["Y"]
    stage.hold("X", "Z")
    m3 = await stage.send_soon("M3", acks=acks, idempotent=idempotent)
    await stage.until(lambda: y.end == 3)
    stage.hold("X", "Y")
    if acks != ACKS_ALL:
        await stage.until(lambda: m3.is_over)
    stage.point(x.high_watermark == y.high_watermark == 2, "M3 is not committed", "M3는 커밋되지 않았다")
    stage.narrate(
        "M3 is on X, and Y has copied it. What X answers to Z is late, so Z has no M3: it is not committed"
        + (" and the producer waits." if acks == ACKS_ALL else ", but with acks=1 the leader's answer is enough."),
        "M3는 X에 저장되었고 Y도 복제했다. Z에게 가는 응답이 늦어 Z에는 없으므로 커밋되지 않았"
        + ("고 프로듀서는 기다린다." if acks == ACKS_ALL else "지만, acks=1은 리더의 응답만 기다린다."),
    )
    return m3


async def _on_the_leader_only(stage: Stage, acks: int, idempotent: bool) -> SentMessage:
    x = stage["X"]
    m4 = await stage.send_soon("M4", acks=acks, idempotent=idempotent)
    await stage.until(lambda: x.end == 4)
    if acks != ACKS_ALL:
        await stage.until(lambda: m4.is_over)
    stage.narrate(
        "M4 is on X only. All watermarks are still 2, behind M2. "
        + (
            "The producer has an ack for neither M3 nor M4."
            if acks == ACKS_ALL
            else "The producer has an ack for M4 all the same: X has written it."
        ),
        "M4는 X에만 있다. 하이워터마크는 모두 M2까지, 즉 2이다. "
        + (
            "프로듀서는 M3와 M4에 대한 ack를 받지 못했다."
            if acks == ACKS_ALL
            else "그래도 X가 저장했으므로 프로듀서는 M4에 대한 ack를 수신했다."
        ),
    )
    return m4


async def _elect_y(stage: Stage, acks: int) -> None:
    y, z = stage["Y"], stage["Z"]
    for survivor in ("Y", "Z"):
        stage.hold("producer", survivor)
    stage.kill("X")
    await stage.until(lambda: y.leads)
    stage.narrate(
        "X fails before M3 and M4 are committed. The controller elects Y, the next one in the ISR; the leader epoch goes from "
        f"0 to {y.epoch}. Y keeps M3: a new leader cuts nothing.",
        "M3와 M4가 커밋되기 전에 X에 장애가 발생한다. 컨트롤러가 ISR의 Y를 리더로 선출하고, 리더에포크는 0에서 "
        f"{y.epoch}로 증가한다. 새 리더는 아무것도 지우지 않으므로 Y의 M3는 남는다.",
    )
    stage.release("X")
    await stage.until(lambda: z.high_watermark == 3)
    stage.narrate(
        "Z fetches M3 from Y. Its next fetch moves Y's high watermark to 3, and the answer to that moves Z's: "
        "M3 is committed now" + ("; the producer's retry is still on its way." if acks == ACKS_ALL else "."),
        "Z가 Y에게서 M3를 가져온다. Z의 다음 가져오기 요청에 Y가 하이워터마크를 3으로 올리고, 그 응답으로 Z도 올린다. "
        "이제 M3는 커밋되었다." + (" 프로듀서의 재시도는 아직 도착하지 않았다." if acks == ACKS_ALL else ""),
    )
