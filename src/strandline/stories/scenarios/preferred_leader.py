"""preferred-leader: leaders are spread over the brokers at creation, and go back to where they were after a failure (S25)."""

from __future__ import annotations

from strandline.stories.registry import story
from strandline.stories.stage import Stage

CHECK_S = 3


@story(
    "preferred-leader",
    en="The first replica of each partition is preferred: leadership moves when its broker dies, and returns when it is healthy",
    ko="각 파티션의 첫 번째 복제본이 선호 복제본이다: 브로커가 죽으면 리더가 옮겨 가고, 건강해지면 되돌아온다",
)
async def preferred_leader(stage: Stage) -> None:
    await stage.open(
        assignments={0: ["101", "102", "103"], 1: ["102", "103", "101"], 2: ["103", "101", "102"]},
        node_config={
            "auto.leader.rebalance.enable": "true",
            "leader.imbalance.check.interval.seconds": str(CHECK_S),
        },
    )
    for partition, name in enumerate(("a1", "b1", "c1")):
        await stage.send(name, partition=partition)
    await stage.settle()
    stage.point(_leaders(stage) == ["101", "102", "103"], "each broker leads one", "브로커마다 하나씩 리더이다")
    stage.narrate(
        "Three partitions, three replicas each. The first replica of each is its preferred one, and they are spread: "
        "101 leads p0, 102 leads p1, 103 leads p2.",
        "파티션 3개, 복제본 3개씩. 각 파티션의 첫 번째 복제본이 선호 복제본이며 고르게 분포한다. "
        "p0은 101, p1은 102, p2는 103이 리더이다.",
    )

    stage.kill("101")
    await stage.until(lambda: stage.leader_of(0) == "102")
    await stage.until(lambda: all((state := stage.state(p)) is not None and 101 not in state.isr for p in range(3)))
    await stage.send("a2", partition=0)
    moved = _leaders(stage)
    stage.narrate(
        "101 dies. p0 is led by the next replica in its list that is in sync: 102. So 102 has the work of two leaders, 103 of one.",
        "101이 죽는다. p0의 리더는 복제본 목록에서 다음으로 동기화된 102가 된다. 102는 리더 두 몫을 하고 103은 하나를 한다.",
    )

    stage.restart("101")
    await stage.until(lambda: stage["101"].end == 2 and stage["101"].is_back)
    stage.narrate(
        "101 returns as a follower of everything: leadership does not come by itself, and 101 has to copy a2 first.",
        "101이 모든 파티션의 팔로워로 돌아온다. 리더 자리는 저절로 돌아오지 않으며, 먼저 a2를 복제해야 한다.",
    )

    await stage.settle()
    stage.point(_leaders(stage) == moved, "a healthy preferred replica does not lead yet", "아직 리더가 아니다")
    stage.narrate(
        f"101 is in every ISR again, so it is healthy. Every {CHECK_S} s the controller looks for partitions "
        "that are not led by their preferred replica.",
        f"101이 모든 ISR에 다시 들어왔다. 컨트롤러는 {CHECK_S}초마다 선호 복제본이 리더가 아닌 파티션을 찾는다.",
    )

    await stage.until(lambda: stage.leader_of(0) == "101")
    await stage.send("a3", partition=0)
    await stage.settle()
    stage.narrate(
        f"It finds p0 and moves leadership back to 101, in leader epoch {stage.epoch}. Nothing is cut: 101 had everything.",
        f"p0을 찾아 리더를 101로 되돌린다. 리더에포크는 {stage.epoch}이다. 101은 모든 메시지를 갖고 있었으므로 잘리는 것은 없다.",
    )
    read = await stage.read()
    stage.point(
        moved == ["102", "102", "103"]
        and _leaders(stage) == ["101", "102", "103"]
        and read == ["a1", "a2", "a3"]
        and all(node.names == read for node in stage.brokers.values()),
        "Leadership returns to the preferred replicas once they are in sync, and these are spread over the brokers: so is the "
        "load.",
        "리더는 결국 선호 복제본으로 돌아오고, 선호 복제본은 고르게 분포하므로 리더의 부하도 균형을 이룬다.",
    )


def _leaders(stage: Stage) -> list[str | None]:
    return [stage.leader_of(partition) for partition in range(3)]
