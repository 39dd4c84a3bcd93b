"""slow-follower: a follower that can't keep up holds the watermark back, until it leaves the ISR (S8, S11)."""

from __future__ import annotations

from strandline.stories.registry import story
from strandline.stories.stage import Stage


@story(
    "slow-follower",
    en="A follower stops fetching: the watermark waits for it, goes on without it, and takes it back once it has caught up",
    ko="팔로워가 가져오기를 멈추면 하이워터마크가 기다리다가, ISR에서 빼고 나아가며, 따라잡으면 다시 ISR에 넣는다",
)
async def slow_follower(stage: Stage) -> None:
    await stage.open(node_config={"replica.lag.time.max.ms": "4000"})
    leader, slow = stage["101"], stage["103"]

    await stage.send("M1", "M2")
    await stage.settle()
    stage.narrate(
        "101 leads, 102 and 103 follow. M1 and M2 are on all three: the watermark is 2.",
        "101이 리더, 102와 103이 팔로워이다. M1과 M2는 셋 모두에 있고 하이워터마크는 2이다.",
    )

    stage.cut("103", "101")
    m3 = await stage.send_soon("M3")
    await stage.until(lambda: stage["102"].end == 3)
    await stage.wait(0.1)
    stage.point(leader.high_watermark == 2 and not m3.is_over, "the watermark waits", "하이워터마크는 기다린다")
    read = await stage.read()
    stage.point(read == ["M1", "M2"], "M3 can't be read yet", "M3는 아직 읽을 수 없다")
    stage.narrate(
        "103 can't reach 101 any more, so it does not fetch M3. It is still in the ISR, and not every ISR member has M3: "
        "the watermark stays 2, the producer waits, and a consumer reads M1 and M2 only.",
        "103이 101에 닿지 못해 M3를 가져가지 못한다. 103은 아직 ISR에 있고 ISR 모두가 M3를 가진 것이 아니므로, "
        "하이워터마크는 2에 머물고 프로듀서는 기다리며 컨슈머는 M1, M2만 읽는다.",
    )

    await stage.until(lambda: "103" not in stage.isr)
    stage.point(stage.image.brokers[103].fenced is False, "103 is alive", "103은 살아 있다")
    stage.narrate(
        "103 has not caught up for longer than replica.lag.time.max.ms. It still sends its heartbeats, so the controller does "
        "not fence it; it is the leader that proposes an ISR without 103, and the controller accepts it. 103 is OSR and may "
        "not be elected.",
        "103이 replica.lag.time.max.ms보다 오래 리더를 따라잡지 못했다. 하트비트는 보내고 있으므로 컨트롤러는 103을 차단하지 "
        "않는다. 리더가 103을 뺀 ISR을 요청하고 컨트롤러가 받아들인다. 103은 이제 OSR이고 리더가 될 자격이 없다.",
    )

    await stage.until(lambda: leader.high_watermark == 3 and m3.is_over)
    stage.narrate(
        "The shrunken ISR, 101 and 102, has M3: the watermark moves to 3, and the producer has its answer.",
        "줄어든 ISR인 101과 102는 M3를 모두 가졌다. 하이워터마크가 3으로 올라가고 프로듀서는 응답을 받는다.",
    )

    await stage.send("M4")
    stage.point(
        "103" not in stage.isr and slow.end == 2,
        "the watermark does not wait for 103",
        "하이워터마크는 103을 기다리지 않는다",
    )
    stage.narrate(
        "M4 is committed at once: 103, which lacks two messages by now, is no longer waited for.",
        "M4는 바로 커밋된다. 두 메시지가 모자란 103은 더 이상 기다리지 않는다.",
    )

    stage.release()
    await stage.until(lambda: slow.end == 4)
    is_out = "103" not in stage.isr
    stage.narrate(
        "103 reaches the leader again, asks for offset 2 and gets M3 and M4. The leader learns from the next fetch "
        "that 103 has them.",
        "103이 다시 리더에 닿아 2번 오프셋을 요청하고 M3와 M4를 받는다. 다 받았다는 것은 다음 가져오기 요청이 알려 준다.",
    )

    await stage.settle()
    stage.narrate(
        "It asks for offset 4, the end of the log: caught up. The leader asks the controller to take 103 into the ISR again.",
        "103이 로그의 끝인 4번 오프셋을 요청한다. 따라잡았다. 리더는 컨트롤러에게 103을 다시 ISR에 넣도록 요청한다.",
    )
    stage.point(
        is_out and sorted(stage.isr) == ["101", "102", "103"] and slow.names == leader.names and stage.epoch == 0,
        "A slow follower holds the watermark back for about replica.lag.time.max.ms, not for ever, and joins the ISR again "
        "once it has caught up.",
        "느린 팔로워는 replica.lag.time.max.ms 정도만 하이워터마크를 붙잡고, 따라잡으면 ISR로 돌아온다.",
    )
