"""diverging-fetch: followers make their logs equal to the new leader's with what a Fetch carries (S18)."""

from __future__ import annotations

from strandline.stories.frames import BilingualText
from strandline.stories.registry import story
from strandline.stories.request_capture import FETCH, CapturedRequest, RequestCapture, diverging, position
from strandline.stories.scenarios.data_plane import lead_in_epoch_1
from strandline.stories.stage import Stage

GIVE_UP_MS = 1_000
"""The producer gives up a3 and a4 before it finds the new leader: the notes let 103 have other records at these offsets."""


@story(
    "diverging-fetch",
    en="102 has records that the new leader has not: the leader's answer to its Fetch says where to cut",
    ko="102에는 새 리더에게 없는 레코드가 있다: 가져오기 응답의 divergingEpoch가 자를 곳을 알려 준다",
    note=BilingualText(
        "The notes count by last offsets: epoch 1 ends at 2 in 103's log and at 4 in 102's. On the wire are the offsets behind "
        "them, 3 and 5.",
        "노트는 마지막 오프셋으로 센다. 에포크 1은 103의 로그에서 2, 102의 로그에서 4에서 끝난다. 실제로 오가는 값은 그다음 "
        "오프셋인 3과 5이다.",
    ),
)
async def diverging_fetch(stage: Stage) -> None:
    await lead_in_epoch_1(stage)
    stage.pin("delivery.timeout.ms (a3, a4)", GIVE_UP_MS)
    of_102 = RequestCapture(stage, "102", "103", FETCH)
    of_101 = RequestCapture(stage, "101", "103", FETCH)
    await _uncommitted_on_102(stage)
    await _elect_103(stage)
    await _reconcile_102(stage, of_102)
    await _reconcile_101(stage, of_101)


async def _uncommitted_on_102(stage: Stage) -> None:
    old, follower, new = stage["101"], stage["102"], stage["103"]
    await stage.send("a0", "a1")
    await stage.settle()
    stage.narrate(
        "101 leads in leader epoch 1; epoch 0 was 103's, before a restart, and has no records. a0 and a1 are on all three brokers "
        "and committed: the high watermark is 2.",
        "101이 리더에포크 1의 리더다. 에포크 0은 재시작 전의 103이었고 레코드가 없다. "
        "a0와 a1은 세 브로커에 모두 있고 커밋되었다. 하이워터마크는 2이다.",
    )

    await stage.send_soon("a2")
    await stage.until(lambda: new.end == 3)
    stage.hold("101", "103")
    await stage.until(lambda: follower.high_watermark == 3)
    stage.narrate(
        "a2 reaches all three and is committed; but 101's answers to 103 are late from here on, so 103 does not learn of it: its "
        "watermark is still 2.",
        "a2도 세 브로커에 복제되어 커밋되었다. 그러나 이때부터 101의 응답이 103에 늦게 도착해, 103은 이를 모르고 "
        "하이워터마크가 2에 머문다.",
    )

    for name in ("a3", "a4"):
        await stage.send_soon(name, delivery_timeout_ms=GIVE_UP_MS, request_timeout_ms=GIVE_UP_MS)
    await stage.until(lambda: follower.end == 5)
    stage.point(old.high_watermark == 3 and new.end == 3, "a3 and a4 are not committed", "a3와 a4는 커밋되지 않았다")
    stage.narrate(
        "102 copies a3 and a4 at offsets 3 and 4, 103 does not get them: they are not committed, the watermark stays 3.",
        "102는 3, 4번 오프셋의 a3와 a4를 복제하지만 103은 받지 못한다. 커밋되지 않았으므로 하이워터마크는 3에 머문다.",
    )


async def _elect_103(stage: Stage) -> None:
    new = stage["103"]
    stage.hold("102", "103")
    stage.hold("producer", "103")
    stage.hold("producer", "102")
    stage.kill("101")
    await stage.until(lambda: new.leads)
    await stage.until(lambda: all(message.is_over for message in stage.clients.sent))
    stage.release("producer")
    stage.release("101")
    stage.narrate(
        "101 fails. The controller elects 103, which is in the ISR, in leader epoch 2. It has what was committed, offsets 0 to 2. "
        "The producer got errors for a3 and a4.",
        "101에 장애가 생기고, 컨트롤러가 ISR에 있는 103을 리더에포크 2의 리더로 선출한다. 커밋된 0-2번 오프셋은 모두 갖고 있다. "
        "프로듀서는 a3와 a4에 대해 오류를 받았다.",
    )

    for name in ("b3", "b4", "b5", "b6"):
        await stage.send_soon(name)
    await stage.until(lambda: new.end == 7)
    stage.narrate(
        "103 takes new records, b3 to b6, in epoch 2. Offsets 3 and 4 of 102 are something else.",
        "103이 에포크 2로 새 레코드 b3부터 b6까지 받는다. 102의 3, 4번 오프셋은 이와 다르다.",
    )


async def _reconcile_102(stage: Stage, fetches: RequestCapture) -> None:
    follower, leader = stage["102"], stage["103"]
    stage.release()
    await stage.until(lambda: follower.end == 3)
    first = fetches.exchanges[0]
    _note_request(stage, "102", first)
    _note_response(stage, first)
    stage.point(
        position(first) == (5, 1) and diverging(first) == (1, 3) and leader.high_watermark == 2,
        "103 answers where its epoch 1 ends",
        "103은 에포크 1의 끝을 응답한다",
    )
    stage.narrate(
        "102 fetches from offset 5 and says that its last record is of epoch 1. In 103's log epoch 1 ends at offset 3, so the "
        "answer has no records but a diverging epoch: epoch 1, end offset 3. 102 cuts offsets 3 and 4.",
        "102가 5번 오프셋을 요청하며 lastFetchedEpoch 1을 함께 보낸다. 103의 로그에서 에포크 1은 3에서 끝나므로, 레코드 대신 "
        "divergingEpoch(epoch 1, endOffset 3)로 응답한다. 102는 3, 4번 오프셋을 자른다.",
    )

    await stage.until(lambda: leader.high_watermark == 3)
    second = fetches.exchanges[1]
    stage.point(position(second) == (3, 1), "the second fetch is from 3", "두 번째 요청은 3번부터")
    _note_request(stage, "102", second)
    stage.narrate(
        "102 fetches again: offset 3, last epoch 1. That agrees with 103's log, so every ISR member has offsets 0 to 2: "
        "103 moves its high watermark to 3.",
        "102가 다시 요청한다. 3번 오프셋, 마지막 에포크 1. 103의 로그와 일치하므로 ISR 모두가 0-2번을 가졌다는 뜻이고, "
        "103은 하이워터마크를 3으로 옮긴다.",
    )

    await stage.until(lambda: follower.end == 7)
    _note_response(stage, second)
    stage.narrate(
        "The answer brings b3 to b6; 102 appends them with their epoch 2.",
        "응답으로 b3부터 b6까지 오고, 102는 에포크 2 그대로 자신의 로그에 저장한다.",
    )

    await stage.until(lambda: leader.high_watermark == 7)
    third = fetches.exchanges[2]
    stage.point(position(third) == (7, 2), "the third fetch is from 7", "세 번째 요청은 7번부터")
    _note_request(stage, "102", third)
    stage.narrate(
        "The next Fetch is for offset 7, last epoch 2. 103 moves its high watermark to 7: the two logs are reconciled.",
        "다음 요청은 7번 오프셋, lastFetchedEpoch 2이다. 103은 하이워터마크를 7로 옮긴다. 두 로그의 조정이 끝났다.",
    )


async def _reconcile_101(stage: Stage, fetches: RequestCapture) -> None:
    returned = stage["101"]
    stage.restart("101")
    await stage.until(lambda: returned.end == 3)
    first = fetches.exchanges[0]
    stage.point(
        position(first) == (5, 1) and diverging(first) == (1, 3),
        "101 gets the same answer",
        "101도 같은 응답을 받는다",
    )
    _note_request(stage, "101", first)
    _note_response(stage, first)
    stage.narrate(
        "101 returns as a follower with a0 to a4. Its first Fetch gets the same answer, and it cuts offsets 3 and 4.",
        "101이 a0부터 a4까지 가진 채 팔로워로 돌아온다. 첫 가져오기 요청에 같은 응답을 받고 3, 4번 오프셋을 자른다.",
    )

    await stage.settle()
    read = await stage.read()
    stage.narrate(
        "It copies b3 to b6, catches up with the end of the log and is taken into the ISR again. A consumer reads what 103 has.",
        "b3부터 b6까지 복제해 로그의 끝까지 따라잡고 ISR에 다시 추가된다. 컨슈머는 103이 가진 그대로 읽는다.",
    )
    same = all(node.held() == stage["103"].held() for node in stage.brokers.values())
    acknowledged = [message.name for message in stage.clients.sent if message.is_acknowledged]
    stage.point(
        same and read == acknowledged == ["a0", "a1", "a2", "b3", "b4", "b5", "b6"] and len(stage.isr) == 3,
        "A Fetch carries the last fetched epoch, its answer says where that epoch ends: a follower cuts what was never committed, "
        "and nothing else.",
        "가져오기 요청은 마지막 에포크를 알리고, 응답은 그 에포크의 끝을 알린다. 팔로워는 커밋되지 않은 것만 자른다.",
    )


def _note_request(stage: Stage, broker: str, exchange: CapturedRequest) -> None:
    offset, epoch = position(exchange)
    said = f"Fetch(offset={offset}, lastFetchedEpoch={epoch})"
    stage.note_of(broker, said, said)


def _note_response(stage: Stage, exchange: CapturedRequest) -> None:
    ((partition,),) = (topic.partitions for topic in exchange.response.responses)
    epoch, end = diverging(exchange)
    where = f"divergingEpoch(epoch={epoch}, endOffset={end}), " if epoch >= 0 else ""
    said = f"{where}highWatermark={partition.high_watermark}, records={len(partition.records or b'')} bytes"
    stage.note_of("103", said, said)
