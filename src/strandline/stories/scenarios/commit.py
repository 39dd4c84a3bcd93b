"""commit: the four steps in which a message becomes committed, with nothing but fetches (S6, S9, S10)."""

from __future__ import annotations

from strandline.stories.registry import story
from strandline.stories.stage import Stage


@story(
    "commit",
    en="The four steps of a commit: no ACK, the next fetch shows the leader what its followers have",
    ko="커밋의 네 단계: ACK 없이, 팔로워의 다음 가져오기 요청이 어디까지 복제했는지 리더에게 알려 준다",
)
async def commit(stage: Stage) -> None:
    await stage.open(brokers=("1", "2", "3"))
    leader, followers = stage["1"], [stage["2"], stage["3"]]
    stage.narrate(
        "peter-test01 has one partition with three replicas. Broker 1 leads; 2 and 3 ask it again and again: "
        "fetch from offset 0.",
        "peter-test01 토픽은 파티션 1개, 리플리케이션 팩터 3이다. 브로커 1이 리더이고, 2와 3은 "
        "'0번 오프셋 가져오기' 요청을 되풀이한다.",
    )

    message1 = await stage.send_soon("message1")
    await stage.until(lambda: leader.end == 1)
    stage.narrate(
        "Step 1. The leader appends message1 at offset 0. No follower has it yet: it is not committed, no consumer sees it, "
        "and the producer (acks=all) waits.",
        "1단계. 리더가 message1을 0번 오프셋에 저장한다. 아직 리더만 갖고 있으므로 커밋되지 않았고, 컨슈머는 읽을 수 없으며, "
        "프로듀서(acks=all)는 기다린다.",
    )

    await stage.until(lambda: all(follower.end == 1 for follower in followers))
    stage.point(leader.high_watermark == 0, "nothing is committed by a copy alone", "복제만으로는 커밋되지 않는다")
    stage.narrate(
        "Step 2. The leader answers the fetches that were waiting; the followers write message1 with the leader's epoch. "
        "The leader does not know whether they managed to: there is no ACK. Its high watermark stays 0.",
        "2단계. 리더가 기다리던 가져오기 요청에 응답하고, 팔로워들은 message1을 리더 에포크와 함께 저장한다. "
        "ACK가 없으므로 리더는 성공 여부를 모르고, 하이워터마크는 0에 머문다.",
    )

    await stage.until(lambda: leader.high_watermark == 1)
    stage.point(
        all(follower.high_watermark == 0 for follower in followers),
        "the followers' watermark lags behind the leader's",
        "팔로워의 하이워터마크는 리더보다 늦다",
    )
    stage.narrate(
        "Step 3. The followers fetch again, from offset 1 now: so they have offset 0. Every ISR member has message1, "
        "the leader moves its high watermark to 1: committed. The followers do not know it yet.",
        "3단계. 팔로워들이 이번에는 1번 오프셋을 요청한다. 0번은 성공했다는 뜻이다. ISR 모두가 message1을 가졌으므로 리더는 "
        "하이워터마크를 1로 올린다. 커밋되었다. 팔로워들은 아직 모른다.",
    )

    await stage.until(lambda: all(follower.high_watermark == 1 for follower in followers))
    await stage.until(lambda: message1.is_over)
    stage.narrate(
        "Step 4. The response to that fetch has no record in it, but it carries the high watermark: the followers move theirs "
        "to 1, one fetch after the leader. The producer has its answer.",
        "4단계. 그 요청의 응답에는 새 메시지가 없지만 하이워터마크가 함께 온다. 팔로워들도 리더보다 한 번의 가져오기만큼 늦게 "
        "1로 올린다. 프로듀서는 응답을 받았다.",
    )

    await stage.send_soon("message2")
    await stage.until(lambda: leader.end == 2)
    stage.narrate(
        "message2 goes the same way: the leader has it at offset 1, and the consumers still see message1 only.",
        "message2도 같은 길을 간다. 리더가 1번 오프셋에 저장했고, 컨슈머에게는 아직 message1만 보인다.",
    )

    await stage.settle()
    read = await stage.read()
    stage.narrate(
        "Two fetches later message2 is committed too, everywhere, and a consumer reads both.",
        "가져오기 두 번 뒤에는 message2도 모든 브로커에서 커밋되었고, 컨슈머는 둘 다 읽는다.",
    )
    stage.point(
        read == ["message1", "message2"] and all(node.names == read for node in stage.brokers.values()),
        "A message is committed when every ISR member has it; the leader learns it from the offset of the next fetch, "
        "the followers one fetch later.",
        "ISR의 모든 멤버가 메시지를 가지면 커밋된다. 리더는 다음 가져오기의 오프셋으로 이를 알고, "
        "팔로워는 한 번의 가져오기 뒤에 안다.",
    )
