"""old-leader-returns: X comes back, cuts what the new leader does not have, catches up and joins the ISR again (S20)."""

from __future__ import annotations

from strandline.stories.frames import BilingualText
from strandline.stories.registry import story
from strandline.stories.request_capture import FETCH, RequestCapture, diverging, position
from strandline.stories.scenarios.replica_recovery import BROKERS, lose_the_leader
from strandline.stories.stage import Stage


@story(
    "old-leader-returns",
    en="X returns: it cuts M4, which Y does not have in epoch 0, copies what Y has and joins the ISR again",
    ko="X의 복구: Y의 에포크 0에 없는 M4만 지우고, Y의 로그를 복제해 ISR에 복귀한다",
    note=BilingualText(
        "The notes cut X to M2. The protocol keeps M3, which Y holds in the same leader epoch 0, and cuts M4 only. There is no "
        "ZooKeeper either: X registers with the controller.",
        "노트에서는 X가 M2까지만 남긴다. 실제 프로토콜은 Y도 같은 리더에포크 0으로 갖고 있는 M3를 남기고 M4만 지운다. "
        "주키퍼도 없다. X는 컨트롤러에 등록한다.",
    ),
)
async def old_leader_returns(stage: Stage) -> None:
    m3, m4 = await lose_the_leader(stage)
    x, y, z = (stage[name] for name in BROKERS)

    stage.release()
    await stage.until(lambda: m3.is_over and m4.is_over)
    m5 = (await stage.send("M5"))[0]
    await stage.until(lambda: z.high_watermark == 5)
    stage.narrate(
        "The producer sends M3 and M4 again: Y has M3 already and appends M4 at offset 3, in epoch 1; then M5 at offset 4. "
        "X, which is down, is out of sync: an OSR.",
        "프로듀서가 M3와 M4를 재시도한다. M3는 이미 있으므로 Y는 M4만 에포크 1로 3번 오프셋에 저장하고, M5를 4번에 저장한다. "
        "다운된 X는 동기화되지 않은 OSR이다.",
    )

    fetches = RequestCapture(stage, "X", "Y", FETCH)
    stage.restart("X")
    await stage.until(lambda: x.is_back)
    kept = x.end == 4 and "X" not in stage.isr
    stage.point(kept, "nothing is cut before the leader was asked", "리더에게 묻기 전에는 지우지 않는다")
    stage.narrate(
        "X is back: it registers with the controller, gets the metadata and learns that Y leads in epoch 1. On its disk are M1 to "
        "M4, all of epoch 0. It cuts nothing on its own: it asks Y with the offset 4 and its last epoch 0.",
        "X가 복구된다. 컨트롤러에 등록하고 메타데이터를 받아, Y가 에포크 1의 리더임을 안다. 디스크에는 에포크 0의 M1부터 M4까지 "
        "있다. 스스로 지우지 않고, 4번 오프셋과 마지막 에포크 0을 담아 Y에게 가져오기 요청을 보낸다.",
    )

    await stage.until(lambda: x.end == 3)
    first = fetches.exchanges[0]
    answered = position(first) == (4, 0) and diverging(first) == (0, 3)
    stage.point(answered and x.names == ["M1", "M2", "M3"], "M3 stays", "M3는 남는다")
    stage.narrate(
        "Y answers: my epoch 0 ends at offset 3. So X keeps M3, which both have of epoch 0, and cuts M4, which was never "
        "committed. (The notes cut M3 too.)",
        "Y는 '나의 에포크 0은 3번 오프셋에서 끝난다'고 응답한다. X는 둘 다 에포크 0으로 갖고 있는 M3는 남기고, 커밋된 적 없는 "
        "M4를 지운다. (노트에서는 M3도 지운다.)",
    )

    await stage.until(lambda: x.end == 5)
    stage.narrate(
        "X fetches from offset 3 and copies M4 and M5 with their epoch 1. It has all that Y has, but Y does not know it yet: "
        "X is still an OSR.",
        "X가 3번 오프셋부터 요청해 M4와 M5를 에포크 1 그대로 복제한다. Y가 가진 것을 모두 가졌지만 Y는 아직 모르므로, "
        "X는 여전히 OSR이다.",
    )

    await stage.until(lambda: "X" in stage.isr)
    await stage.settle()
    read = await stage.read()
    stage.narrate(
        "X's next fetch is for offset 5: it has caught up. Y asks the controller to take it in, and X is in the ISR again.",
        "X의 다음 요청은 5번 오프셋, 즉 리더를 따라잡았다는 뜻이다. Y가 컨트롤러에 요청해 X는 ISR에 복귀한다.",
    )
    sent = m3.is_acknowledged and m4.is_acknowledged and m5.is_acknowledged
    stage.point(
        sent and read == ["M1", "M2", "M3", "M4", "M5"] and x.held() == y.held() == z.held(),
        "A broker that returns cuts only what its leader does not have, copies the rest and is in sync again: nothing that was "
        "acknowledged is lost.",
        "돌아온 브로커는 리더에게 없는 것만 지우고, 나머지를 복제해 다시 동기화된다. ack를 받은 메시지는 유실되지 않는다.",
    )
