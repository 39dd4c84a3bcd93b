"""compaction: a log that keeps the last value of each key; tombstones go after their time (S33)."""

from __future__ import annotations

from strandline.histories.member import LOG_DIR
from strandline.log.checkpoints import CLEANER_OFFSET_CHECKPOINT
from strandline.stories.frames import BilingualText
from strandline.stories.nodes import tombstone
from strandline.stories.registry import story
from strandline.stories.stage import Stage

SEGMENT_BYTES = 150
"""Room for two messages of about 70 bytes."""
DELETE_RETENTION_MS = 3_600_000
BYTES_PER_SECOND = 1000
"""Slow enough to watch."""


@story(
    "compaction",
    en="The cleaner keeps the last value of each key and every offset; a tombstone deletes a key, and goes after its time",
    ko="클리너는 키마다 마지막 값만 남기고 오프셋은 바꾸지 않는다: 툼스톤은 키를 삭제하고 일정 시간 뒤에 사라진다",
    note=BilingualText(
        "Segments of 150 bytes, a cleaner of 1000 bytes a second and a dirty ratio of 0.01 are for watching: by default a log is "
        "cleaned when half of it is dirty, as fast as it can be, in a process of its own that comes last in line for processor and "
        "disk. An hour passes by moving the clocks of all hosts.",
        "150바이트 세그먼트, 초당 1000바이트의 클리너, 0.01의 더티 비율은 지켜보기 위한 값이다. 기본값으로는 로그의 절반이 "
        "더티일 때 정리하고, 프로세서와 디스크를 가장 나중에 쓰는 별도의 프로세스에서 속도 제한 없이 정리한다. "
        "모든 호스트의 시계를 앞으로 옮겨 한 시간을 보낸다.",
    ),
)
async def compaction(stage: Stage) -> None:
    await stage.open(
        topic_config={
            "cleanup.policy": "compact",
            "internal.segment.bytes": str(SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": str(DELETE_RETENTION_MS),
        },
        node_config={
            "log.cleaner.backoff.ms": "1000",
            "log.cleaner.io.max.bytes.per.second": str(BYTES_PER_SECOND),
        },
    )
    leader = stage["101"]

    await _update(stage, "a=1", "b=1", "a=2", "c=1", "a=3", "b=2", "c=2")
    await stage.settle()
    stage.clients.words()
    _files(stage)
    stage.narrate(
        "Each message has a key: a, b or c. With cleanup.policy=compact nothing is deleted by age: the topic is to keep the last "
        "value of each key. Two messages fit into a segment; c=2 is in the active one.",
        "메시지마다 키(a, b, c)가 있다. cleanup.policy=compact이면 오래되었다고 삭제하지 않고 키마다 마지막 값을 유지한다. "
        "세그먼트 하나에 메시지 두 개가 들어가고, c=2는 액티브 세그먼트에 있다.",
    )

    await stage.until(lambda: all(_clean_offset(stage, name) == 6 for name in stage.brokers))
    _files(stage)
    stage.narrate(
        "Every broker cleans its own replica. The cleaner notes the newest offset of each key in the closed segments, writes them "
        "anew without what came again later, and puts the new files in the place of the old ones. c=1 stays: c=2 is in the active "
        "segment, which is never cleaned. The messages that stay keep their offsets.",
        "브로커마다 자신의 복제본을 정리한다. 클리너는 닫힌 세그먼트에서 키마다 가장 새로운 오프셋을 기록하고, 나중에 다시 나온 "
        "것을 빼고 새로 저장한 뒤 이전 파일과 바꾼다. 액티브 세그먼트는 정리하지 않으므로 c=2가 있어도 c=1은 남는다. 남은 "
        "메시지의 오프셋은 그대로다.",
    )

    read = await stage.read(offset=0)
    stage.point(read == ["c=1", "a=3", "b=2", "c=2"], "what is left is read", "남은 메시지를 읽는다")
    stage.narrate(
        "A consumer that begins at offset 0 gets the next message that is there, c=1 at offset 3. At the end it has "
        "the same table as a consumer that has read every message: a=3, b=2, c=2.",
        "0번 오프셋부터 읽는 컨슈머는 남아 있는 다음 메시지, 3번 오프셋의 c=1을 받는다. 끝까지 읽으면 모든 메시지를 읽은 "
        "컨슈머와 똑같이 a=3, b=2, c=2를 얻는다.",
    )

    await _update(stage, tombstone("b"), "a=4", "c=3", "a=5")
    await stage.until(lambda: _is_cleaning(stage, "103"))
    stage.clients.words()
    stage.kill("103")
    _files(stage)
    stage.narrate(
        "b is deleted with a tombstone, a message with the key and no value. 103 is killed while it cleans: what it has written so "
        "far is in files named .cleaned, and its log is untouched.",
        "키만 있고 값이 없는 메시지, 툼스톤으로 b를 삭제한다. 103은 정리하는 도중에 종료된다. 그때까지 저장한 내용은 .cleaned "
        "파일에 있고 로그는 그대로다.",
    )

    stage.restart("103")
    await stage.until(lambda: stage["103"].is_back)
    await stage.until(lambda: all(_clean_offset(stage, name) == 10 for name in stage.brokers))
    await stage.settle()
    _files(stage)
    stage.narrate(
        "103 comes back, throws the unfinished files away and cleans anew. b=2 is gone everywhere; the tombstone stays for "
        "delete.retention.ms, so that a consumer that was away learns of the deletion too.",
        "103은 돌아와 끝나지 않은 파일을 버리고 다시 정리한다. 모든 복제본에서 b=2가 사라졌다. 잠시 떨어져 있던 컨슈머도 삭제를 "
        "알 수 있도록 툼스톤은 delete.retention.ms 동안 남는다.",
    )
    stays = tombstone("b") in leader.names

    _pass(stage, DELETE_RETENTION_MS + 60_000)
    await _update(stage, "a=6", "c=4", "a=7", "c=5")
    await stage.until(lambda: all(_clean_offset(stage, name) == 14 for name in stage.brokers))
    await stage.settle()
    stage.clients.words()
    _files(stage)
    stage.narrate(
        "More than an hour later the logs are cleaned again. Now the tombstone goes as well: nothing says any more that b was ever "
        "there.",
        "한 시간이 더 지나 로그를 다시 정리한다. 이제 툼스톤도 사라져 b가 있었다는 흔적이 남지 않는다.",
    )
    read = await stage.read("consumer B", offset=0)
    stage.point(
        stays
        and read == leader.names
        and _table(read) == {"a": "7", "c": "5"}
        and tombstone("b") not in leader.names
        and all((node.names, node.end, node.log_start) == (read, 15, 0) for node in stage.brokers.values()),
        "Compaction keeps the last value of each key, on every replica for itself; offsets never change, a deleted key takes its "
        "tombstone along, and a crash in the middle loses nothing.",
        "컴팩션은 복제본마다 각자 키의 마지막 값을 남긴다. 오프셋은 바뀌지 않고, 삭제된 키는 툼스톤과 함께 사라지며, 도중에 "
        "종료되어도 잃는 것이 없다.",
    )


async def _update(stage: Stage, *names: str) -> None:
    """Send messages that are called key=value."""
    for name in names:
        await stage.send(name, key=name.partition("=")[0])


def _table(names: list[str]) -> dict[str, str]:
    return {key: value for key, _, value in (name.partition("=") for name in names)}


def _clean_offset(stage: Stage, name: str) -> int:
    """Up to where a broker has written down that it cleaned."""
    written = stage[name].member.machine.disk.peek(f"{LOG_DIR}/{CLEANER_OFFSET_CHECKPOINT}") or b""
    for line in written.decode().splitlines()[2:]:
        topic, _, offset = line.rsplit(" ", 2)
        if topic == stage.topic:
            return int(offset)
    return 0


def _names(stage: Stage, name: str, suffix: str) -> list[str]:
    found = stage[name].member.machine.disk.peek_names(f"{LOG_DIR}/{stage.topic}-0")
    return [file for file in found if file.endswith(suffix)]


def _is_cleaning(stage: Stage, name: str) -> bool:
    return bool(_names(stage, name, ".log.cleaned"))


def _files(stage: Stage) -> None:
    """Let the next frame say how far each was cleaned."""
    for name in stage.brokers:
        unfinished = "".join(f", {file}" for file in _names(stage, name, ".log.cleaned"))
        line = f"{CLEANER_OFFSET_CHECKPOINT} {_clean_offset(stage, name)}{unfinished}"
        stage.note_of(name, line, line)


def _pass(stage: Stage, milliseconds: int) -> None:
    """Move the clocks of all hosts on."""
    machines = [node.member.machine for node in stage.nodes.values()]
    for machine in [*machines, stage.world.node("producer"), stage.world.node("consumer")]:
        machine.clock.jump(milliseconds)
