"""new-leader-watermark: a new leader answers no offset requests until its watermark has caught up with the old leader's (S19)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from strandline.client.aio import AsyncClient, Consumer, ConsumerConfig
from strandline.errors import ErrorCode
from strandline.stories.frames import BilingualText
from strandline.stories.registry import story
from strandline.stories.request_capture import FETCH, LIST_OFFSETS, RequestCapture, position
from strandline.stories.scenarios.data_plane import lead_in_epoch_1
from strandline.stories.stage import Stage

ASKING, READING = "consumer A", "consumer B"


@story(
    "new-leader-watermark",
    en="The new leader's watermark is behind the old one's: until it has caught up no client gets an older end offset",
    ko="새 리더의 하이워터마크가 이전 리더보다 낮다: 따라잡을 때까지 더 낮은 값을 알려 주지 않는다",
    note=BilingualText(
        "The notes give a Fetch the retriable error too: they simplify. Only the question for offsets gets it; a Fetch waits and "
        "comes back empty.",
        "노트에서는 가져오기 요청도 재시도 가능한 오류를 받는데, 이는 단순화한 것이다. 오프셋 조회만 오류를 받고, "
        "가져오기 요청은 기다리다가 빈 응답을 받는다.",
    ),
)
async def new_leader_watermark(stage: Stage) -> None:
    await lead_in_epoch_1(stage)
    old, follower, new = stage["101"], stage["102"], stage["103"]

    await stage.send("a0")
    await stage.settle()
    # 102 does not fetch, so the watermark stays where it is while 103 copies on.
    stage.hold("102", "101")
    for name in ("a1", "a2"):
        await stage.send_soon(name)
    await stage.until(lambda: new.end == 3)
    stage.hold("101", "103")
    stage.release("102")
    await stage.until(lambda: follower.high_watermark == 3)
    stage.point(
        old.high_watermark == 3 and new.high_watermark == 1,
        "103's watermark lags behind",
        "103의 하이워터마크가 늦다",
    )
    stage.narrate(
        "101 leads in leader epoch 1. Offsets 0 to 2 are on all three brokers and committed: 101's high watermark is 3. 103 has "
        "the records, but the answer that carries the watermark is late: its own is 1.",
        "101이 리더에포크 1의 리더다. 0-2번 오프셋은 세 브로커에 모두 있고 커밋되어, 101의 하이워터마크는 3이다. 103은 "
        "레코드는 있지만 하이워터마크를 담은 응답이 늦어 자신의 값은 1이다.",
    )

    before = await stage.read(READING)
    end_before = await stage.do(ASKING, _end_offset_of(stage.topic))
    stage.note_of(ASKING, f"gets end offset {end_before}", f"끝 오프셋 {end_before}을 받음")
    stage.narrate(
        "Consumers see it: A asks for the end offset and gets 3, B reads all three records.",
        "컨슈머들에게도 보인다. A는 끝 오프셋을 물어 3을 받고, B는 세 레코드를 모두 읽는다.",
    )

    stage.hold("102", "103")
    stage.kill("101")
    await stage.until(lambda: new.leads)
    stage.narrate(
        "101 fails, 103 is elected in leader epoch 2. Its high watermark is 1, lower than what consumers have seen. It is not "
        "wrong, it only does not know yet how far the others are: 102 has not fetched so far.",
        "101에 장애가 생기고 103이 리더에포크 2의 리더로 선출된다. 하이워터마크는 1로, 컨슈머들이 이미 본 값보다 낮다. "
        "102가 아직 요청하지 않아, 어디까지 복제되었는지 모를 뿐이다.",
    )

    caught_up = RequestCapture(stage, "102", "103", FETCH)
    asked = RequestCapture(stage, ASKING, "103", LIST_OFFSETS)
    answer = asyncio.ensure_future(stage.do(ASKING, _end_offset_of(stage.topic)))
    await stage.until(lambda: ErrorCode.OFFSET_NOT_AVAILABLE in _errors(asked))
    stage.note_of(ASKING, "ListOffsets: OFFSET_NOT_AVAILABLE, tries again", "ListOffsets: OFFSET_NOT_AVAILABLE, 재시도")
    stage.narrate(
        "A asks for the end offset again. Answering 1 would move the end offset back, so 103 answers OFFSET_NOT_AVAILABLE. "
        "That is retriable, and A keeps asking.",
        "A가 끝 오프셋을 다시 묻는다. 1이라고 응답하면 끝 오프셋이 뒤로 가므로 103은 OFFSET_NOT_AVAILABLE로 응답한다. "
        "재시도 가능한 오류이므로 A는 계속 묻는다.",
    )

    fetched = RequestCapture(stage, READING, "103", FETCH)
    while_behind = await stage.read(READING, offset=1, wait_s=0.5)
    empty = [p for e in fetched.exchanges if e.response for t in e.response.responses for p in t.partitions]
    stage.point(
        while_behind == []
        and empty
        and all(p.error_code == 0 and p.high_watermark == 1 and not p.records for p in empty)
        and not answer.done()
        and set(_errors(asked)) == {ErrorCode.OFFSET_NOT_AVAILABLE},
        "a Fetch waits, empty, and the question stays open",
        "가져오기 요청은 빈 채로 기다린다",
    )
    stage.narrate(
        "B fetches from offset 1. This is no error: the Fetch waits at 103 for the watermark to pass 1, and comes back empty.",
        "B가 1번 오프셋을 요청한다. 이는 오류가 아니다. 하이워터마크가 1을 넘기를 103에서 기다리다가 빈 응답을 받는다.",
    )

    stage.release()
    await stage.until(lambda: new.high_watermark == 3)
    stage.point(position(caught_up.exchanges[0]) == (3, 1), "102 has what was committed", "102는 커밋된 것을 갖고 있다")
    stage.narrate(
        "102's Fetch arrives: offset 3, last epoch 1. So all in the ISR have offsets 0 to 2, and 103 moves its high watermark "
        "to 3, where its epoch began.",
        "102의 가져오기 요청이 도착한다. 3번 오프셋, 마지막 에포크 1. ISR 모두가 0-2번을 가졌으므로 103은 하이워터마크를 "
        "에포크가 시작된 3으로 옮긴다.",
    )

    end_after = await answer
    after = await stage.read(READING, offset=1)
    stage.note_of(ASKING, f"gets end offset {end_after}", f"끝 오프셋 {end_after}을 받음")
    stage.narrate(
        "A's next try is answered with 3, and B reads offsets 1 and 2.",
        "A의 다음 시도에는 3이라고 응답하고, B는 1번과 2번 오프셋을 읽는다.",
    )
    stage.point(
        end_before == end_after == 3 and before == ["a0", "a1", "a2"] and after == ["a1", "a2"],
        "A new leader answers no end offset before its high watermark has reached the start of its epoch: consumers never see it "
        "go back.",
        "새 리더는 하이워터마크가 자기 에포크의 시작에 이르기 전에는 끝 오프셋을 알려 주지 않는다. 컨슈머에게 하이워터마크는 "
        "뒤로 가지 않는다.",
    )


def _end_offset_of(topic: str) -> Callable[[AsyncClient], Awaitable[int]]:
    async def ask(client: AsyncClient) -> int:
        consumer = Consumer(client, ConsumerConfig())
        try:
            return (await consumer.end_offsets([(topic, 0)]))[topic, 0]
        finally:
            await consumer.close()

    return ask


def _errors(asked: RequestCapture) -> list[ErrorCode]:
    """Of each answer so far."""
    answers = [e.response for e in asked.exchanges if e.response is not None]
    return [ErrorCode(p.error_code) for answer in answers for topic in answer.topics for p in topic.partitions]
