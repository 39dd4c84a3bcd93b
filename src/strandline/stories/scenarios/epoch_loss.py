"""epoch-loss: a follower restarts with a lagging watermark and its leader dies right after (S15, S16, KIP-101)."""

from __future__ import annotations

from strandline.stories.frames import BilingualText
from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.stage import Stage


@story(
    "epoch-loss",
    en="A restarted follower cuts at its watermark and message2 is lost; asking for the epoch's end keeps it",
    ko="재시작한 팔로워가 하이워터마크에서 자르면 message2가 유실되고, 리더에포크를 물으면 지켜진다",
    options=(Option.WITHOUT_LEADER_EPOCHS,),
    note=BilingualText(
        "A broker that was killed leaves the ISR when it returns, which the notes do not have; so that it can be elected at all, "
        "both ways run with unclean.leader.election.enable=true. Where the notes send a leader epoch request, today the fetch "
        "itself carries the last fetched epoch.",
        "노트와 달리, 강제 종료된 브로커는 돌아올 때 ISR에서 빠진다. 그래도 선출될 수 있도록 두 경우 모두 "
        "unclean.leader.election.enable=true로 실행한다. 노트의 리더에포크 요청은 이제 가져오기 요청의 "
        "lastFetchedEpoch가 대신한다.",
    ),
)
async def epoch_loss(stage: Stage) -> None:
    await stage.open(brokers=("1", "2"), topic_config={"unclean.leader.election.enable": "true"})
    leader, follower = stage["1"], stage["2"]
    without = stage.has(Option.WITHOUT_LEADER_EPOCHS)

    await stage.send("message1")
    await stage.settle()
    stage.narrate(
        "One partition, two replicas, min.insync.replicas 1. message1 is on both brokers and committed: both watermarks are 1.",
        "파티션 1개, 리플리케이션 팩터 2, min.insync.replicas 1. message1은 두 브로커에 있고 커밋되었다. "
        "하이워터마크는 둘 다 1이다.",
    )

    message2 = await stage.send_soon("message2")
    await stage.until(lambda: leader.high_watermark == 2)
    stage.point(follower.high_watermark == 1, "the follower's watermark lags", "팔로워의 하이워터마크는 늦다")
    stage.narrate(
        "The follower has message2 and asks for offset 2, so the leader moves its watermark to 2. The follower does not know "
        "that yet: its own is still 1.",
        "팔로워는 message2를 복제하고 2번 오프셋을 요청했고, 리더는 하이워터마크를 2로 올렸다. "
        "팔로워는 아직 이를 전달받지 못해 1이다.",
    )

    await stage.until(lambda: message2.is_over)
    stage.kill("2")
    await stage.until(lambda: "2" not in stage.isr)
    stage.narrate(
        "The follower goes down before the answer reaches it. The producer has its answer: message2 is committed. "
        "On the follower's disk: message1, message2, and a watermark of 1.",
        "응답을 받기 전에 팔로워가 다운된다. 프로듀서는 message2가 커밋되었다는 응답을 이미 받았다. "
        "팔로워의 디스크에는 message1, message2와 하이워터마크 1이 남아 있다.",
    )

    if without:
        await _cut_at_the_watermark(stage)
    else:
        await _ask_for_the_epoch(stage)

    stage.kill("1")
    await stage.until(lambda: follower.leads)
    lost = "message2" not in follower.names
    if lost:
        stage.lost(
            "message2",
            "committed and acknowledged, but in no live log",
            "커밋되고 응답까지 했지만 남은 로그에 없다",
        )
    stage.narrate(
        "At this moment the leader goes down. The follower is the only one left and is elected: "
        + (
            "it has no message2, and the producer will not send it again."
            if lost
            else f"in leader epoch {follower.epoch} it has message2 at offset 1."
        ),
        "바로 이 순간 리더가 다운되고, 유일하게 남은 팔로워가 새 리더로 선출된다. "
        + (
            "새 리더에는 message2가 없고, 프로듀서도 다시 보내지 않는다."
            if lost
            else f"리더에포크 {follower.epoch}의 리더는 1번 오프셋의 message2를 갖고 있다."
        ),
    )

    stage.restart("1")
    await stage.settle()
    read = await stage.read()
    stage.narrate(
        "The old leader returns as a follower and takes over the log of the new one"
        + (": now message2 is gone everywhere." if lost else ", which is the same as its own."),
        "구 리더가 팔로워로 돌아와 새 리더의 로그를 따른다. "
        + ("이제 message2는 어디에도 없다." if lost else "두 로그는 같다."),
    )
    if without:
        stage.point(
            message2.is_acknowledged and read == ["message1"] and leader.names == ["message1"],
            "Without leader epochs exactly message2 is lost, which was committed and acknowledged.",
            "리더에포크가 없으면, 커밋되고 응답까지 한 message2가 정확히 유실된다.",
        )
    else:
        stage.point(
            read == ["message1", "message2"] and leader.names == follower.names == read,
            "With leader epochs nothing is lost: a follower cuts only where its log differs from the leader's.",
            "리더에포크가 있으면 아무것도 유실되지 않는다. 팔로워는 리더의 로그와 다른 부분만 자른다.",
        )


async def _cut_at_the_watermark(stage: Stage) -> None:
    follower = stage["2"]
    stage.restart("2")
    await stage.until(lambda: follower.is_back)
    stage.narrate(
        "The follower comes back. Its watermark is all it can rely on: what is above can't be trusted, so it cuts message2 off. "
        "Then it asks the leader for offset 1.",
        "팔로워가 복구된다. 믿을 것은 자신의 하이워터마크뿐이므로, 그보다 높은 message2를 신뢰할 수 없다고 보고 삭제한다. "
        "그리고 리더에게 1번 오프셋을 요청한다.",
    )


async def _ask_for_the_epoch(stage: Stage) -> None:
    follower = stage["2"]
    stage.restart("2")
    await stage.until(lambda: follower.is_back)
    stage.point(follower.names == ["message1", "message2"], "nothing is cut", "아무것도 잘리지 않는다")
    stage.narrate(
        "The follower comes back and cuts nothing. It asks the leader: I have epoch 0 up to offset 2, what comes next?",
        "팔로워가 복구되지만 아무것도 삭제하지 않는다. 대신 리더에게 '에포크 0, 2번 오프셋까지 갖고 있다'고 알리며 요청한다.",
    )
    await stage.until(lambda: follower.high_watermark == 2)
    stage.narrate(
        "In the leader's log epoch 0 reaches as far: message2 stays. The response carries the watermark, and the follower "
        "raises its own to 2.",
        "리더의 로그에서도 에포크 0은 거기까지 이어지므로 message2는 유지된다. 팔로워는 응답을 확인하고 하이워터마크를 2로 올린다.",
    )
