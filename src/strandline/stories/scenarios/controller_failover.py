"""controller-failover: the active controller dies, and another takes over at once with the metadata it has in memory (S26)."""

from __future__ import annotations

from strandline.stories.frames import BilingualText
from strandline.stories.registry import story
from strandline.stories.stage import Stage


@story(
    "controller-failover",
    en="The active controller dies: producing goes on, another takes over at once, and handles the next broker that fails",
    ko="active 컨트롤러가 죽어도 쓰기는 계속되고, 다른 컨트롤러가 바로 이어받아 다음 브로커 장애를 처리한다",
    note=BilingualText(
        "The notes' older half has one broker as the controller and the metadata in ZooKeeper; here three controllers form a "
        "quorum (KRaft), as in the newer half. What takes milliseconds here, because a closed connection counts as a failure, "
        "takes Apache Kafka seconds: it waits for controller.quorum.fetch.timeout.ms and broker.session.timeout.ms.",
        "노트의 앞부분은 브로커 하나가 컨트롤러이고 메타데이터가 주키퍼에 있다. 여기서는 뒷부분처럼 컨트롤러 셋이 "
        "쿼럼(KRaft)을 이룬다. 여기서는 끊긴 연결을 곧바로 알아채 밀리초가 걸리지만, 아파치 카프카는 "
        "controller.quorum.fetch.timeout.ms와 broker.session.timeout.ms만큼 기다리므로 몇 초가 걸린다.",
    ),
)
async def controller_failover(stage: Stage) -> None:
    await stage.open(controllers=3, node_config={"metadata.max.idle.interval.ms": "0"})
    first = stage.active_controller
    assert first is not None
    others = [name for name in stage.controllers if name != first]

    await stage.send("M1")
    await stage.settle()
    begin = stage[first].metadata_end - 3
    stage.show("metadata", metadata_from=begin, nodes=list(stage.controllers))
    same = len({stage[name].metadata_end for name in stage.controllers}) == 1
    stage.narrate(
        f"Three controllers. {first} is active: it leads the metadata log, {' and '.join(others)} copy it and keep the metadata "
        "in memory as well, up to the same offset.",
        f"컨트롤러는 셋이다. {first}가 active로 메타데이터 로그의 리더이고, {', '.join(others)}도 로그를 복제해 "
        "같은 오프셋까지의 메타데이터를 메모리에 유지한다.",
    )

    stage.kill(first)
    killed_at = stage.world.now
    stage.show("topic")
    m2 = (await stage.send("M2"))[0]
    stage.point(stage.active_controller is None, "there is no active controller", "active 컨트롤러가 없다")
    stage.narrate(
        f"{first} dies. For a moment there is no active controller, and producing goes on: leaders and followers know their roles, "
        "M2 is written, copied and acknowledged.",
        f"{first}가 죽는다. 잠시 active 컨트롤러가 없지만 리더와 팔로워는 자기 역할을 알고 있으므로 M2는 저장, 복제되고 응답을 "
        "받는다.",
    )

    await stage.until(lambda: stage.active_controller is not None)
    second = stage.active_controller
    assert second is not None
    took_s = stage.world.now - killed_at
    await stage.until(lambda: stage[second].metadata_high_watermark == stage[second].metadata_end)
    stage.show("metadata", metadata_from=begin, nodes=list(stage.controllers))
    stage.narrate(
        f"{took_s * 1000:.0f} ms later {second} is elected, in quorum epoch {stage[second].quorum_epoch}. It loads "
        "nothing from anywhere: "
        "the metadata is in its memory, one record (LeaderChange) and it is active.",
        f"{took_s * 1000:.0f}밀리초 뒤 {second}가 쿼럼 에포크 {stage[second].quorum_epoch}의 active로 선출된다. "
        "메타데이터가 이미 메모리에 있어 따로 읽어 올 것이 없다. 레코드 하나(LeaderChange)를 쓰고 바로 active가 된다.",
    )

    stage.show("topic")
    stage.kill("101")
    await stage.until(lambda: stage["102"].leads and stage["103"].epoch == 1)
    stage.narrate(
        f"Now broker 101 dies, the leader of the partition. {second} sees its connections close and no heartbeat come, "
        "fences it and elects 102, "
        "in leader epoch 1.",
        f"이번에는 파티션의 리더인 브로커 101이 죽는다. {second}가 하트비트가 끊긴 것을 알고 102를 리더에포크 1의 리더로 선출한다.",
    )

    m3 = (await stage.send("M3"))[0]
    stage.restart("101", first)
    await stage.settle()
    read = await stage.read()
    await stage.until(lambda: stage[first].quorum_role == "follower")
    stage.narrate(
        f"M3 goes to 102. Then 101 and {first} return, the one as a follower of the partition, "
        f"the other as a follower of {second}: being first does not make it active again.",
        f"M3는 102에 저장된다. 101은 파티션의 팔로워로, {first}는 {second}의 팔로워로 돌아온다. "
        "먼저 active였다고 다시 active가 되지는 않는다.",
    )
    stage.point(
        same
        and m2.is_acknowledged
        and m3.is_acknowledged
        and read == ["M1", "M2", "M3"]
        and stage.active_controller == second
        and all(node.names == read for node in stage.brokers.values()),
        "A dead controller stops no producer, and the next controller is ready at once: it has the metadata in memory.",
        "컨트롤러가 죽어도 쓰기는 멈추지 않고, 메타데이터를 메모리에 가진 다음 컨트롤러가 바로 이어받는다.",
    )
