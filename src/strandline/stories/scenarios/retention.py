"""retention: a log is segments, and the oldest go, by size and by time (S32)."""

from __future__ import annotations

from strandline.errors import KafkaError
from strandline.stories.frames import BilingualText
from strandline.stories.registry import story
from strandline.stories.stage import Stage

SEGMENT_BYTES = 150
"""Room for two messages of 70 bytes."""
RETENTION_BYTES = 300
HOUR_MS = 3_600_000
MINUTE_MS = 60_000


@story(
    "retention",
    en="Segments roll, and the oldest are deleted by size and by time; a request for a deleted offset gets OFFSET_OUT_OF_RANGE",
    ko="세그먼트가 나뉘고 오래된 것부터 크기와 시간에 따라 삭제된다: 삭제된 오프셋을 요청하면 OFFSET_OUT_OF_RANGE를 받는다",
    note=BilingualText(
        "Segments of 150 bytes are not allowed in production (segment.bytes is at least 1 MiB); the story uses the "
        "internal setting "
        "without that bound. Hours pass by moving the clocks of all hosts: retention goes by the clock on the wall.",
        "운영에서는 150바이트 세그먼트를 쓸 수 없어(segment.bytes는 1MiB 이상) 하한이 없는 내부 설정을 쓴다. "
        "보존 시간은 벽시계로 재므로 모든 호스트의 시계를 앞으로 옮겨 시간을 보낸다.",
    ),
)
async def retention(stage: Stage) -> None:
    await stage.open(
        topic_config={
            "internal.segment.bytes": str(SEGMENT_BYTES),
            "retention.bytes": str(RETENTION_BYTES),
            "retention.ms": str(HOUR_MS),
        },
        node_config={"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"},
    )
    leader = stage["101"]

    await stage.send("M1", "M2", "M3", "M4", "M5", "M6")
    await stage.settle()
    stage.clients.words()
    _segments(stage)
    stage.point(len(_bases(stage)) == 3, "three segments", "세그먼트 세 개")
    stage.narrate(
        "A log is a row of files, the segments. Two messages fit into one here: M1 to M6 have become three segments, each named "
        "after its first offset. Messages are only written to the last one, the active segment.",
        "로그는 세그먼트라는 파일들로 나뉜다. 여기서는 세그먼트 하나에 메시지 두 개가 들어가므로 M1~M6은 세 세그먼트가 되었고, "
        "각 파일 이름은 첫 오프셋이다. 새 메시지는 마지막 세그먼트(액티브 세그먼트)에만 저장된다.",
    )

    await stage.send("M7", "M8")
    await stage.until(lambda: all(node.log_start == 2 for node in stage.brokers.values()))
    stage.clients.words()
    _segments(stage)
    stage.narrate(
        f"With M7 and M8 the log has 560 bytes, and retention.bytes is {RETENTION_BYTES}. The oldest segment goes as a whole; "
        "a second one would leave less than may be kept. The log starts at offset 2 now, on every replica.",
        f"M7과 M8로 로그는 560바이트가 되었고 retention.bytes는 {RETENTION_BYTES}이다. 가장 오래된 세그먼트가 통째로 삭제된다. "
        "하나를 더 지우면 보존할 크기보다 작아진다. 이제 모든 복제본의 로그는 2번 오프셋에서 시작한다.",
    )

    error = await _read_from_the_beginning(stage)
    stage.narrate(
        "A consumer that wants to begin at offset 0 gets OFFSET_OUT_OF_RANGE: what it asks for was deleted, and Kafka does not "
        "silently skip to the log start.",
        "0번 오프셋부터 읽으려는 컨슈머는 OFFSET_OUT_OF_RANGE를 받는다. 요청한 메시지는 이미 삭제되었고, 카프카가 임의로 로그 "
        "시작 오프셋으로 건너뛰지는 않기 때문이다.",
    )

    _pass(stage, 40)
    await stage.send("M9", "M10")
    await stage.until(lambda: all(node.log_start == 4 for node in stage.brokers.values()))
    stage.clients.words()
    _segments(stage)
    stage.narrate(
        "40 minutes later M9 and M10 arrive, and push out the next segment, again by size.",
        "40분 뒤 M9과 M10이 들어오고, 크기 때문에 다음 세그먼트가 밀려난다.",
    )

    _pass(stage, 30)
    await stage.until(lambda: all(node.log_start == 8 for node in stage.brokers.values()))
    _segments(stage)
    stage.narrate(
        "Another 30 minutes: the newest message of the first two segments, M8, is 70 minutes old, more than "
        "retention.ms (one hour). "
        "Both are deleted by time, although there is room. M9 and M10 are 30 minutes old and stay.",
        "다시 30분이 지난다. 앞의 두 세그먼트에서 가장 새로운 M8도 70분이 되어 retention.ms(1시간)를 넘었다. 공간이 "
        "남아도 시간 때문에 "
        "둘 다 삭제된다. 30분 된 M9과 M10은 남는다.",
    )

    read = await stage.read("consumer B", offset=leader.log_start)
    stage.narrate(
        "A consumer that begins where the log begins (auto.offset.reset=earliest) reads what is left.",
        "로그가 시작하는 곳에서 읽는 컨슈머(auto.offset.reset=earliest)는 남아 있는 메시지를 읽는다.",
    )
    stage.point(
        error == "OFFSET_OUT_OF_RANGE"
        and read == ["M9", "M10"]
        and all(node.names == read and node.end == 10 for node in stage.brokers.values()),
        "Whole segments go, the oldest first, by size or by time; the log start moves, and offsets never change.",
        "세그먼트는 오래된 것부터 크기나 시간에 따라 통째로 삭제된다. 로그 시작 오프셋만 옮겨 가고, 메시지의 "
        "오프셋은 바뀌지 않는다.",
    )


def _pass(stage: Stage, minutes: int) -> None:
    """Move the clocks of all hosts on."""
    machines = [node.member.machine for node in stage.nodes.values()]
    for machine in [*machines, stage.world.node("producer"), stage.world.node("consumer")]:
        machine.clock.jump(minutes * MINUTE_MS)


def _bases(stage: Stage) -> list[int]:
    replica = stage["101"].replica()
    assert replica is not None
    return [segment.base_offset for segment in replica.log.segments]


def _segments(stage: Stage) -> None:
    """Let the next frame say which there are."""
    files = ", ".join(f"{base:020}.log" for base in _bases(stage))
    stage.note_of("101", f"{files}", f"{files}")


async def _read_from_the_beginning(stage: Stage) -> str:
    try:
        await stage.read(offset=0)
    except KafkaError as error:
        stage.note_of("consumer", f"{error.code.name} at offset 0", f"0번 오프셋: {error.code.name}")
        return error.code.name
    return ""
