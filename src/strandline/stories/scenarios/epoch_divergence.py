"""epoch-divergence: both brokers fail, and the follower, which returns first, leads and writes on (S17, KIP-101)."""

from __future__ import annotations

from strandline.stories.frames import BilingualText
from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.request_capture import FETCH, RequestCapture, diverging, position
from strandline.stories.stage import Stage

FLUSH_EVERY_MS = 2_000
"""message1 is on the follower's device when this has passed once; message2 comes between two flushes."""
UNHEARD_S = 1.0
"""How much earlier the leader's heartbeats stop than the follower's: the controller fences the leader first."""


@story(
    "epoch-divergence",
    en="Both fail, the follower leads first: by offsets alone message2 and message3 stay side by side at offset 1",
    ko="둘 다 다운된 뒤 팔로워가 먼저 리더가 되면, 오프셋만 비교할 때 1번 오프셋에 서로 다른 메시지가 남는다",
    options=(Option.WITHOUT_LEADER_EPOCHS,),
    note=BilingualText(
        "For the old leader's watermark to be 2, as the notes have it, the follower must have fetched message2: here it had it in "
        "memory only and lost it with the power. With min.insync.replicas=1 no more is promised when both fail; leader epochs keep "
        "the logs equal, not message2. The controller fences the old leader first, so that the follower is the last known leader "
        "and needs no unclean.leader.election.enable.",
        "노트처럼 구 리더의 하이워터마크가 2이려면 팔로워가 message2를 가져갔어야 한다. 여기서는 메모리에만 있다가 정전으로 "
        "사라진다. min.insync.replicas=1에서 둘 다 다운되면 그 이상은 보장되지 않는다. 리더에포크가 지키는 것은 message2가 "
        "아니라 로그의 일치다. 컨트롤러가 구 리더를 먼저 차단(fence)하므로 팔로워가 마지막 리더로 남아, "
        "unclean.leader.election.enable 없이 선출된다.",
    ),
)
async def epoch_divergence(stage: Stage) -> None:
    await stage.open(
        brokers=("1", "2"),
        topic_config={"flush.ms": "100"},
        node_config={"log.flush.scheduler.interval.ms": str(FLUSH_EVERY_MS)},
    )
    stage.pin("acks", "all")
    old, new = stage["1"], stage["2"]
    without = stage.has(Option.WITHOUT_LEADER_EPOCHS)
    await _both_fail(stage)

    stage.restart("2")
    await stage.until(lambda: new.leads)
    stage.narrate(
        "The broker of the follower is repaired first. The partition has no leader, and the follower was the last one: it leads"
        + ("" if without else f", now in epoch {new.epoch}")
        + ", with message1 alone.",
        "팔로워였던 브로커가 먼저 복구된다. 파티션에 리더가 없고 자신이 마지막 리더였으므로, message1만 가진 채 "
        + ("" if without else f"에포크 {new.epoch}의 ")
        + "새로운 리더로 승격된다.",
    )
    began = new.epoch

    await stage.send("message3")
    stage.narrate(
        "The new leader takes message3 at offset 1 and, alone in the ISR, raises its watermark to 2.",
        "새로운 리더는 message3를 1번 오프셋에 저장하고, ISR에 혼자이므로 하이워터마크를 2로 올린다.",
    )

    if without:
        await _compare_offsets(stage)
    else:
        await _ask_for_the_epoch(stage, began)

    await stage.send("message4")
    await stage.settle()
    read = await stage.read()
    stage.narrate(
        "message4 goes to offset 2 in both. "
        + (
            "The two logs stay different, and no broker notices: after the next change of leaders consumers read other messages."
            if without
            else "The two logs are the same."
        ),
        "message4는 두 로그 모두 2번 오프셋에 저장된다. "
        + (
            "두 로그는 여전히 다르지만 어느 브로커도 알아채지 못한다. 리더가 바뀌면 컨슈머는 다른 메시지를 읽는다."
            if without
            else "두 로그는 같다."
        ),
    )
    agreed = read == new.names == ["message1", "message3", "message4"]
    if without:
        stage.point(
            agreed
            and old.names == ["message1", "message2", "message4"]
            and old.high_watermark == new.high_watermark == 3,
            "Without leader epochs the watermarks are equal and the logs are not: message2 and message3, both at offset 1.",
            "리더에포크가 없으면 하이워터마크는 같지만 로그는 다르다. 1번 오프셋에 한쪽은 message2, 다른 쪽은 message3이 있다.",
        )
    else:
        stage.point(
            agreed and old.held() == new.held(),
            "With leader epochs the old leader sees where the logs part, cuts message2 and copies message3 and message4: "
            "one log.",
            "리더에포크가 있으면 구 리더는 로그가 갈라진 곳을 알고 message2를 삭제한 뒤 message3와 message4를 복제한다. "
            "로그는 하나다.",
        )


async def _both_fail(stage: Stage) -> None:
    old, new = stage["1"], stage["2"]
    without = stage.has(Option.WITHOUT_LEADER_EPOCHS)
    await stage.send("message1")
    await stage.settle()
    replica = new.replica()
    assert replica is not None
    await stage.until(lambda: replica.log.recovery_point == 1, "message1 is on the device")
    stage.narrate(
        "One partition, two replicas, min.insync.replicas 1. message1 is on both brokers, committed, and flushed to their disks.",
        "파티션 1개, 리플리케이션 팩터 2, min.insync.replicas 1. message1은 두 브로커에 있고 커밋되었으며 디스크에 기록되었다.",
    )

    stage.hold("1", "C1")
    await stage.wait(UNHEARD_S)
    await stage.send("message2")
    await stage.until(lambda: old.checkpoint() == 2)
    stage.narrate(
        "message2 comes. The follower has it too, so the leader's watermark is 2; but the follower's copy is in memory only, it "
        "is not on its disk yet. The controller has had no heartbeat from the leader for a while.",
        "message2가 도착한다. 팔로워도 가져갔으므로 리더의 하이워터마크는 2이다. 그러나 팔로워의 사본은 메모리에만 있고 아직 "
        "디스크에 기록되지 않았다. 컨트롤러는 한동안 리더의 하트비트를 받지 못했다.",
    )

    stage.power_loss("2")
    stage.kill("1")
    stage.point(
        new.names == ["message1"] and old.names == ["message1", "message2"],
        "only the leader's disk has message2",
        "message2는 리더의 디스크에만 있다",
    )
    stage.narrate(
        "Both go down, the follower with its power: on disk the old leader has message1, message2 and a watermark of 2, the "
        "follower has message1 only.",
        "둘 다 다운되고, 팔로워는 전원이 나갔다. 구 리더의 디스크에는 message1, message2와 하이워터마크 2가, 팔로워의 디스크에는 "
        "message1만 남아 있다.",
    )

    await stage.until(lambda: stage.leader == "2")
    await stage.until(lambda: stage.leader is None)
    stage.release()
    stage.narrate(
        "The controller notices first that the old leader is gone, fences it and elects the follower, which it still takes to "
        "be alive; then the follower's session ends too: the partition has no leader"
        + ("." if without else f", and the leader epoch has gone from 0 to {stage.epoch}."),
        "컨트롤러는 구 리더를 먼저 차단(fence)하고, 아직 살아 있다고 보는 팔로워를 리더로 선출한다. 곧 팔로워의 세션도 "
        "끝난다. 파티션에는 리더가 없" + ("다." if without else f"고, 리더에포크는 0에서 {stage.epoch}로 증가했다."),
    )


async def _compare_offsets(stage: Stage) -> None:
    old = stage["1"]
    stage.restart("1")
    await stage.until(lambda: old.is_back)
    stage.diverged(1, "message2 on one broker, message3 on the other", "한쪽은 message2, 다른 쪽은 message3")
    stage.narrate(
        "The old leader is repaired and becomes a follower. Its watermark is 2 and so is the leader's: by offsets nothing is "
        "wrong, so it keeps message2 and asks for offset 2.",
        "구 리더가 복구되어 팔로워가 된다. 자신의 하이워터마크가 리더의 것과 2로 일치하므로 message2를 삭제하지 않고, "
        "2번 오프셋을 요청한다.",
    )


async def _ask_for_the_epoch(stage: Stage, began: int) -> None:
    old = stage["1"]
    fetches = RequestCapture(stage, "1", "2", FETCH)
    stage.restart("1")
    await stage.until(lambda: old.is_back)
    stage.narrate(
        "The old leader is repaired and becomes a follower. It asks the leader: I have epoch 0 up to offset 2, what comes next?",
        "구 리더가 복구되어 팔로워가 된다. 리더에게 '에포크 0을 2번 오프셋까지 갖고 있다'고 알리며 다음을 요청한다.",
    )
    await stage.until(lambda: old.end == 1)
    first = fetches.exchanges[0]
    answered = position(first) == (2, 0) and diverging(first) == (0, 1)
    stage.point(answered, "epoch 0 ends at offset 1", "에포크 0은 1번 오프셋에서 끝난다")
    stage.narrate(
        f"In the new leader's log epoch 0 ends at offset 1; what follows is of epoch {began}. So the old leader cuts message2.",
        f"새로운 리더의 로그에서 에포크 0은 1번 오프셋에서 끝나고 그다음은 에포크 {began}이다. "
        "그래서 구 리더는 message2를 삭제한다.",
    )
    await stage.until(lambda: old.end == 2)
    stage.narrate(
        "Then it copies message3 to offset 1, with the epoch in which it was written.",
        "이어서 message3를 기록될 때의 에포크 그대로 1번 오프셋에 복제한다.",
    )
