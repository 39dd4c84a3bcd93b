"""acks-all-duplicate: a retry after the leader's death, and what keeps it from being written twice (S22)."""

from __future__ import annotations

from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.scenarios.replica_recovery import lose_the_leader
from strandline.stories.stage import Stage


@story(
    "acks-all-duplicate",
    en="acks=all is at least once: a retry doubles M3, unless the producer is idempotent",
    ko="acks=all은 at least once: 멱등성이 없으면 재시도로 M3가 중복되고, 있으면 한 번만 남는다",
    options=(Option.WITHOUT_IDEMPOTENCE,),
)
async def acks_all_duplicate(stage: Stage) -> None:
    without = stage.has(Option.WITHOUT_IDEMPOTENCE)
    m3, m4 = await lose_the_leader(stage, idempotent=not without)
    y, z = stage["Y"], stage["Z"]

    stage.release()
    await stage.until(lambda: y.end == (5 if without else 4))
    expected = ["M1", "M2", "M3", "M3", "M4"] if without else ["M1", "M2", "M3", "M4"]
    if without:
        stage.doubled("M3", "at offsets 2 and 3", "2번과 3번 오프셋")
    stage.narrate(
        "The producer has no ack for M3 and M4 and sends both again, to Y. "
        + (
            "Y cannot know that it has this M3 already: it appends it a second time, then M4."
            if without
            else "Y knows M3's producer id and sequence number from the copy in its log: it answers offset 2 and writes nothing. "
            "M4 is new and goes to offset 3."
        ),
        "M3와 M4에 대한 ack를 받지 못한 프로듀서가 둘 다 Y로 재시도한다. "
        + (
            "이 M3가 이미 있는 것인지 Y는 알 길이 없으므로 한 번 더 저장하고, 이어서 M4를 저장한다."
            if without
            else "Y는 복제해 둔 M3의 프로듀서 ID와 시퀀스 번호를 알고 있으므로, 다시 쓰지 않고 2번 오프셋이라고 응답한다. "
            "M4는 처음이므로 3번 오프셋에 저장한다."
        ),
    )

    await stage.until(lambda: m3.is_over and m4.is_over)
    await stage.settle()
    read = await stage.read()
    stage.narrate(
        f"Z fetches {'the second M3 and M4' if without else 'M4'}, and its next fetch moves the watermark. "
        "The producer has its acks now, and a consumer reads what there is.",
        f"Z는 {'중복된 M3와 M4' if without else 'M4'}를 가져오고, 다음 가져오기로 하이워터마크가 올라간다. "
        "프로듀서는 이제 ack를 받았고, 컨슈머는 있는 그대로 읽는다.",
    )
    kept = m3.is_acknowledged and m4.is_acknowledged and read == expected and y.names == z.names == expected
    if without:
        stage.point(
            kept and m3.offset == 3,
            "acks=all alone is at least once: nothing is lost, but M3 is there twice.",
            "acks=all만으로는 at least once이다. 유실은 없지만 M3는 중복된다.",
        )
    else:
        stage.point(
            kept and m3.offset == 2,
            "With enable.idempotence the retry finds M3 in the new leader's log: nothing is lost and nothing is doubled.",
            "enable.idempotence=true이면 새 리더가 재시도된 M3를 알아본다. 유실도 중복도 없다.",
        )
