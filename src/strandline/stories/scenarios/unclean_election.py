"""unclean-election: no in-sync replica is left: wait for one, or elect another and lose what it lacks (S24)."""

from __future__ import annotations

from strandline.stories.frames import BilingualText
from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.stage import Stage


@story(
    "unclean-election",
    en="No ISR member is left: the partition waits and nothing is lost, or an OSR leads and its missing messages are",
    ko="ISR에 아무도 남지 않았을 때: 기다리면 유실이 없고, OSR을 리더로 선출하면 모자란 메시지가 유실된다",
    options=(Option.UNCLEAN,),
    note=BilingualText(
        "When the last member leaves the ISR, the controller keeps it in the ELR (eligible leader replicas, KIP-966), and as "
        "the last known leader once it has come back from a crash: the controller waits for that replica. The notes have no ELR.",
        "마지막 멤버가 ISR에서 빠져도 컨트롤러는 누구를 기다려야 하는지 알도록 ELR(KIP-966)에 남겨 둔다. 노트에는 ELR이 없다.",
    ),
)
async def unclean_election(stage: Stage) -> None:
    unclean = stage.has(Option.UNCLEAN)
    await stage.open(topic_config={"unclean.leader.election.enable": "true" if unclean else "false"})
    old, new = stage["101"], stage["102"]

    await stage.send("M1")
    await stage.settle()
    stage.narrate(
        "101 leads, M1 is on all three. min.insync.replicas is 1: a single replica in sync may go on alone.",
        "101이 리더이고 M1은 셋 모두에 있다. min.insync.replicas가 1이므로 동기화된 복제본 하나만으로도 계속할 수 있다.",
    )

    stage.kill("102", "103")
    await stage.until(lambda: stage.isr == ["101"])
    m2, m3 = await stage.send("M2", "M3")
    stage.narrate(
        "102 and 103 die. 101 goes on alone: M2 and M3 are on every member of the ISR, which is 101, so they are committed "
        "and acknowledged.",
        "102와 103이 죽고 101 혼자 계속한다. M2와 M3는 ISR의 모든 멤버, 즉 101에 있으므로 커밋되고 응답을 받는다.",
    )

    stage.kill("101")
    await stage.until(lambda: stage.leader is None)
    stage.narrate(
        "Now 101 dies as well. No replica is left that may lead.",
        "이제 101도 죽는다. 리더가 될 브로커가 없다.",
    )

    if unclean:
        await _elect(stage)
    else:
        await _wait(stage)

    stage.restart("101")
    await stage.settle()
    stage.narrate(
        "101 returns as a follower. Its M2 and M3 are not in the new leader's log, where epoch 0 ends at offset 1: "
        "it cuts them off."
        if unclean
        else "101 returns. It was the last member of the ISR and has all that was committed: it leads again, "
        "and the others copy M2 and M3.",
        "101이 팔로워로 돌아온다. 새 리더의 로그에서 에포크 0은 1번 오프셋에서 끝나므로 M2와 M3를 잘라 낸다."
        if unclean
        else "101이 돌아온다. ISR의 마지막 멤버였고 커밋된 메시지를 모두 갖고 있으므로 다시 리더가 되고, 나머지는 "
        "M2와 M3를 복제한다.",
    )

    if unclean:
        await _refuse(stage)
    m4 = (await stage.send("M4"))[0]
    await stage.settle()
    read = await stage.read()
    stage.narrate(
        "It sends M4 again, under a new producer epoch: M4 stands at the offset where M2 was. The partition goes on."
        if unclean
        else "The partition goes on with M4. Nothing is missing.",
        "새 프로듀서 에포크로 M4를 다시 보내자 M2가 있던 오프셋에 저장된다. 파티션은 계속된다."
        if unclean
        else "파티션은 M4로 이어진다. 빠진 메시지는 없다.",
    )
    acknowledged = m2.is_acknowledged and m3.is_acknowledged and m4.is_acknowledged
    same = all(node.names == read for node in stage.brokers.values())
    if unclean:
        stage.point(
            acknowledged and same and read == ["M1", "M4"] and new.leads,
            "An unclean election keeps the partition available, and loses exactly what the elected replica lacked: M2 and M3.",
            "unclean 선출은 가용성을 지키지만, 선출된 복제본에 없던 M2와 M3가 정확히 유실된다.",
        )
    else:
        stage.point(
            acknowledged and same and read == ["M1", "M2", "M3", "M4"] and old.leads,
            "Without an in-sync replica the partition waits: it is unavailable for a while, and nothing is lost.",
            "동기화된 복제본이 없으면 파티션은 기다린다. 잠시 서비스가 멈추지만 아무것도 유실되지 않는다.",
        )


async def _wait(stage: Stage) -> None:
    stage.restart("102", "103")
    await stage.until(lambda: all(not stage.image.brokers[i].fenced for i in (102, 103)))
    await stage.wait(1.0)
    stage.point(stage.leader is None, "no leader is elected", "리더가 선출되지 않는다")
    stage.narrate(
        "102 and 103 are back, but out of sync: they may not lead (unclean.leader.election.enable=false). "
        "The partition has no leader, it can be neither written nor read.",
        "102와 103이 돌아왔지만 OSR이므로 리더가 될 수 없다(unclean.leader.election.enable=false). "
        "파티션에 리더가 없어 쓰지도 읽지도 못한다.",
    )


async def _elect(stage: Stage) -> None:
    stage.restart("102")
    await stage.until(lambda: stage["102"].leads)
    stage.restart("103")
    await stage.until(lambda: "103" in stage.isr)
    for name in ("M2", "M3"):
        stage.lost(
            name, "committed and acknowledged, but 102 never had it", "커밋되고 응답까지 했지만 102에는 없던 메시지"
        )
    stage.narrate(
        "102 and 103 are back, out of sync. unclean.leader.election.enable=true: 102 is elected all the same, in "
        f"epoch {stage.epoch}. "
        "It has M1 only.",
        f"102와 103이 OSR인 채로 돌아온다. unclean.leader.election.enable=true이므로 102가 에포크 {stage.epoch}의 리더로 선출된다. "
        "102에는 M1뿐이다.",
    )


async def _refuse(stage: Stage) -> None:
    m4 = (await stage.send("M4"))[0]
    stage.point(m4.error_name == "OUT_OF_ORDER_SEQUENCE_NUMBER", "the producer notices", "프로듀서가 알아챈다")
    stage.narrate(
        "The producer is idempotent: it numbers its messages, and the new leader sees a gap between M1 and M4. "
        "M4 is refused, and from the error the producer knows that messages of its own were lost.",
        "프로듀서는 멱등성을 위해 메시지에 번호를 붙이므로, 새 리더는 M1과 M4 사이가 비었음을 안다. "
        "M4는 거절되고, 프로듀서는 자신의 메시지가 유실되었음을 알게 된다.",
    )
