"""uncommitted-read: why a consumer reads up to the high watermark and not up to the log end (S9)."""

from __future__ import annotations

from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.stage import Stage

MESSAGE_1, MESSAGE_2 = "test message1", "test message2"
GIVE_UP_MS = 1_000
"""The producer gives up before it finds the new leader: the notes do not let message2 come a second time."""


@story(
    "uncommitted-read",
    en="A consumer that could read past the high watermark would see a message that was never committed",
    ko="하이워터마크를 넘어 읽을 수 있다면, 컨슈머는 커밋되지 않고 사라질 메시지를 읽게 된다",
    options=(Option.WITHOUT_HIGH_WATERMARK,),
)
async def uncommitted_read(stage: Stage) -> None:
    await stage.open(brokers=("1", "2", "3"))
    stage.pin("acks", "all")
    stage.pin("delivery.timeout.ms (test message2)", GIVE_UP_MS)
    leader, new_leader = stage["1"], stage["2"]
    without = stage.has(Option.WITHOUT_HIGH_WATERMARK)

    await stage.send(MESSAGE_1)
    await stage.settle()
    stage.narrate(
        "peter-test01 has one partition with three replicas; broker 1 leads. test message1 is on all of them and committed: "
        "every watermark is 1.",
        "peter-test01 토픽은 파티션 1개, 리플리케이션 팩터 3이고 브로커 1이 리더다. test message1은 모든 팔로워가 복제했고 "
        "커밋까지 완료되었다. 하이워터마크는 모두 1이다.",
    )

    stage.hold("1", "2")
    stage.hold("1", "3")
    message2 = await stage.send_soon(MESSAGE_2, delivery_timeout_ms=GIVE_UP_MS, request_timeout_ms=GIVE_UP_MS)
    await stage.until(lambda: leader.end == 2)
    stage.narrate(
        "test message2 arrives. Only the leader has it, at offset 1: its answers to the followers' fetches are late. "
        "So it is not committed, and the producer (acks=all) waits.",
        "test message2가 도착하지만 1번 오프셋에 저장한 것은 리더뿐이다. 팔로워에게 가는 응답이 늦어지고 있다. "
        "따라서 커밋되지 않았고, 프로듀서(acks=all)는 기다린다.",
    )

    read_by_a = await stage.read("consumer A")
    stage.point(
        read_by_a == ([MESSAGE_1, MESSAGE_2] if without else [MESSAGE_1]),
        "A reads up to its bound",
        "A는 한계까지 읽는다",
    )
    stage.narrate(
        "Consumer A reads from the leader. "
        + (
            "Without a high watermark it reads up to the log end: test message1 and test message2."
            if without
            else "The high watermark is 1, so it is given test message1 only, though the leader has both."
        ),
        "컨슈머 A가 리더로부터 메시지를 읽어 간다. "
        + (
            "하이워터마크가 없으므로 로그 끝까지, 즉 test message1과 test message2를 모두 읽는다."
            if without
            else "하이워터마크가 1이므로, 리더가 둘 다 갖고 있어도 test message1만 읽는다."
        ),
    )

    stage.hold("producer", "2")
    stage.hold("producer", "3")
    stage.kill("1")
    await stage.until(lambda: new_leader.leads and message2.is_over)
    stage.release()
    stage.narrate(
        "The leader's broker goes down. Broker 2 is in the ISR and is elected, in leader epoch 1. It has test message1 only, "
        f"because nothing else was replicated; the producer got {message2.error_name}.",
        "리더가 있는 브로커에 장애가 발생해, ISR에 있던 브로커 2가 리더에포크 1의 새로운 리더가 된다. 복제되기 전에 리더가 "
        f"바뀌었으므로 test message1만 갖고 있고, 프로듀서는 {message2.error_name} 오류를 받았다.",
    )

    read_by_b = await stage.read("consumer B")
    if without:
        stage.lost(
            MESSAGE_2,
            "consumer A has read it, no other consumer can",
            "컨슈머 A는 읽었지만 다른 컨슈머는 읽을 수 없다",
        )
    stage.narrate(
        "Consumer B reads from the new leader and gets test message1. "
        + ("A and B have read different things." if without else "A and B have read the same."),
        "새로운 컨슈머 B가 새로운 리더로부터 test message1을 읽는다. "
        + ("A와 B는 서로 다른 메시지를 갖게 되었다." if without else "A와 B가 읽은 메시지는 같다."),
    )

    stage.restart("1")
    await stage.settle()
    stage.narrate(
        "Broker 1 returns as a follower. In the new leader's log epoch 0 ends at offset 1, so it cuts test message2, "
        + ("which A has read." if without else "which no consumer has read."),
        "브로커 1이 팔로워로 돌아온다. 새로운 리더의 로그에서 에포크 0은 1번 오프셋에서 끝나므로, "
        + (
            "A가 이미 읽은 test message2를 삭제한다."
            if without
            else "어떤 컨슈머도 읽지 않은 test message2를 삭제한다."
        ),
    )
    if without:
        stage.point(
            read_by_a == [MESSAGE_1, MESSAGE_2] and read_by_b == [MESSAGE_1] and not message2.is_acknowledged,
            "Without a high watermark A has read test message2, which was never committed and is nowhere; B has not.",
            "하이워터마크가 없으면, A는 커밋된 적도 없고 이제 어디에도 없는 test message2를 읽었고 B는 읽지 못했다.",
        )
    else:
        stage.point(
            read_by_a == read_by_b == [MESSAGE_1] and all(a.names == read_by_a for a in stage.brokers.values()),
            "Only committed messages are read, so all consumers see the same, on every leader.",
            "커밋된 메시지만 읽을 수 있으므로, 누가 리더이든 모든 컨슈머는 같은 메시지를 본다.",
        )
