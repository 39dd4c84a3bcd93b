"""metadata-snapshot: the metadata log does not grow for ever, and no node needs what was deleted (S31)."""

from __future__ import annotations

from strandline.client.aio import Admin, AsyncClient
from strandline.client.flow.descriptions import NewTopic
from strandline.stories.registry import story
from strandline.stories.stage import Stage

FETCH_SNAPSHOT = 59


@story(
    "metadata-snapshot",
    en="A snapshot is taken and the metadata log before it deleted; a broker that was away fetches the snapshot and goes on",
    ko="스냅샷을 찍고 그 앞의 메타데이터 로그를 삭제한다: 떠나 있던 브로커는 스냅샷을 받아 이어 간다",
)
async def metadata_snapshot(stage: Stage) -> None:
    await stage.open(
        brokers=("101", "102"),
        topic="",
        lanes="metadata",
        node_config={
            "metadata.log.max.record.bytes.between.snapshots": "700",
            "metadata.max.retention.bytes": "2000",
            "metadata.max.idle.interval.ms": "0",
        },
    )
    controller, away = stage["C1"], stage["102"]
    await stage.until(lambda: len({node.metadata_high_watermark for node in stage.nodes.values()}) == 1)
    stage.show(metadata_from=5)
    first = controller.snapshots[-1]
    stage.narrate(
        "C1 leads the metadata log, 101 and 102 copy it and keep the metadata in memory. After 700 bytes of records each of them "
        f"wrote what it had in memory to disk, a snapshot of everything below offset {first}. The log is still whole.",
        "C1이 메타데이터 로그의 리더이고 101과 102는 로그를 복제해 메모리에 캐시한다. 레코드가 700바이트 쌓이자 각자 메모리의 "
        f"메타데이터를 {first}번 오프셋까지의 스냅샷으로 디스크에 기록했다. 로그는 아직 온전하다.",
    )

    stage.kill("102")
    left_at = away.metadata_end
    await _create(stage, "topic-a")
    stage.narrate(
        f"102 goes down; its log ends at offset {left_at}. Meanwhile an operator creates topics, and the log grows.",
        f"102가 다운된다. 102의 로그는 {left_at}번 오프셋에서 끝난다. 그동안 운영자가 토픽을 만들어 로그가 길어진다.",
    )

    for topic in ("topic-b", "topic-c", "topic-d"):
        await _create(stage, topic)
    start = controller.metadata_start
    stage.point(start > left_at, "the log begins behind what 102 has", "로그가 102의 끝보다 뒤에서 시작한다")
    stage.narrate(
        f"Again 700 bytes: C1 and 101 each take a snapshot at offset {start}. Everything below is in the snapshot, so the records "
        "before it and the older snapshot are deleted: the log starts behind the end of 102's.",
        f"다시 700바이트가 쌓여 C1과 101이 각자 {start}번 오프셋에서 스냅샷을 찍는다. 그 앞의 기록은 스냅샷에 모두 있으므로 "
        "이전 레코드와 옛 스냅샷을 삭제한다. 이제 로그는 102의 끝보다 뒤에서 시작한다.",
    )

    await _create(stage, "topic-e")
    stage.restart("102")
    await stage.until(lambda: stage.requests("102", "C1", FETCH_SNAPSHOT) > 0)
    asked_from = away.metadata_end
    stage.narrate(
        f"102 comes back and fetches from offset {asked_from}, which is gone. C1 does not send records but the id of its snapshot: "
        f"offset {start}, epoch {controller.quorum_epoch}. 102 asks for that (FetchSnapshot).",
        f"102가 돌아와 {asked_from}번 오프셋을 요청하지만 이미 없다. C1은 레코드 대신 스냅샷의 id(오프셋 {start}, 에포크 "
        f"{controller.quorum_epoch})를 알려 주고, 102는 그 스냅샷을 요청한다(FetchSnapshot).",
    )

    await stage.until(lambda: away.metadata_start >= start and stage.image.brokers[102].fenced is False)
    await stage.until(lambda: away.metadata_high_watermark == controller.metadata_end)
    stage.narrate(
        f"102 has the snapshot, drops its own log and goes on with the records from offset {start} on: topic-e.",
        f"102는 스냅샷을 받고 자신의 로그를 버린 뒤 {start}번 오프셋부터 이어서 복제한다. 바로 topic-e이다.",
    )

    stage.kill("101")
    stage.restart("101")
    broker = stage["101"]
    await stage.until(lambda: broker.quorum_role != "" and broker.metadata_end == controller.metadata_end)
    stage.narrate(
        "101 restarts. It requests no snapshot: it loads its own from disk, then the records that follow it, and has the same "
        "metadata in memory as before.",
        "101이 재시작한다. 스냅샷을 요청하지 않고 자기 디스크의 스냅샷과 그 뒤의 레코드를 읽어 메모리의 캐시를 다시 만든다.",
    )
    await stage.until(lambda: all(node.metadata_end == controller.metadata_end for node in stage.brokers.values()))
    await stage.until(lambda: len({_topics(stage, name) for name in stage.nodes}) == 1)
    stage.point(
        left_at == asked_from
        and stage.requests("101", "C1", FETCH_SNAPSHOT) == 0
        and {"topic-a", "topic-e"} <= set(_topics(stage, "102")),
        "A snapshot replaces the log before it: for a restart, and for a node that asks for an offset that was deleted.",
        "스냅샷은 그 앞의 로그를 대신한다. 재시작할 때도, 이미 없는 오프셋을 요청할 때도 스냅샷으로 따라잡는다.",
    )


def _topics(stage: Stage, name: str) -> tuple[str, ...]:
    """That this node has in memory."""
    seen = stage[name].member.look()
    return () if seen is None else tuple(sorted(topic.name for topic in seen.image.topics.values()))


async def _create(stage: Stage, topic: str) -> None:
    async def create(client: AsyncClient) -> None:
        await Admin(client).create_topics([NewTopic(topic, assignments={0: [101]})])

    await stage.do("operator", create)
    ends = {stage[name].metadata_end for name in ("C1", "101")}
    await stage.until(
        lambda: all(stage[name].metadata_high_watermark == max(ends) for name in ("C1", "101") if stage[name].is_up)
    )
    await stage.wait(0.02)
    stage.note_of("operator", f"{topic} is created", f"{topic} 생성됨")
