"""exactly-once-copy: what was read and what was written are committed together (TXN-T42, TXN-T44)."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.client.aio import Admin, AsyncClient
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.errors import KafkaError
from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.stage import Stage
from strandline.stories.transactions import TransactionalProducer

GROUP, TRANSACTIONAL_ID = "copiers", "copier-1"
SOURCE, COPY = 0, 1


@story(
    "exactly-once-copy",
    en="A copier dies between writing its copy and committing its offset: with both in one transaction nothing is copied twice",
    ko="복사본을 쓴 뒤 오프셋을 커밋하기 전에 죽은 복사기. 둘을 한 트랜잭션에 담으면 아무것도 두 번 복사되지 않는다",
    options=(Option.WITHOUT_TRANSACTIONS,),
)
async def exactly_once_copy(stage: Stage) -> None:
    without = stage.has(Option.WITHOUT_TRANSACTIONS)
    await stage.open(brokers=("1", "2", "3"), assignments={SOURCE: ["1", "2"], COPY: ["2", "1"]})
    stage.pin("group.id", GROUP)
    if not without:
        stage.pin("transactional.id", TRANSACTIONAL_ID)

    await stage.send("M1", "M2", client="producer")
    await stage.settle()
    stage.narrate(
        "Partition 0 has M1 and M2. A copier reads them and writes them to partition 1; how far it is, it commits as an offset of "
        f"the group {GROUP}.",
        f"파티션 0에 M1과 M2가 있다. 복사기는 이를 읽어 파티션 1에 쓰고, 어디까지 했는지를 그룹 {GROUP}의 오프셋으로 커밋한다.",
    )

    producer = await _take_over(stage, "copier A")
    found = await stage.read("copier A", partition=SOURCE)
    await _copy(stage, "copier A", producer, found[:1])
    stage.kill("copier A")
    await stage.settle()
    stage.narrate(
        "Copier A reads both, writes M1 to partition 1 and is killed before "
        + (
            "it commits offset 1."
            if without
            else "it commits its transaction, which has the copy and offset 1: neither counts yet."
        ),
        "복사기 A가 둘을 읽어 M1을 파티션 1에 쓰고, "
        + (
            "1번 오프셋을 커밋하기 전에 강제 종료된다."
            if without
            else "복사본과 1번 오프셋을 담은 트랜잭션을 커밋하기 전에 강제 종료된다. 둘 다 아직 효력이 없다."
        ),
    )

    producer = await _take_over(stage, "copier B")
    first = await _committed(stage)
    found = await stage.read("copier B", offset=first, partition=SOURCE)
    await _copy(stage, "copier B", producer, found)
    if producer is None:
        await _commit_offset(stage, "copier B", 2)
    else:
        await producer.commit()
        await stage.until(lambda: stage["2"].held(COPY)[-1].name == "Commit")
    await stage.settle()
    last = await _committed(stage)
    read = await stage.read(
        "consumer", partition=COPY, isolation_level="read_uncommitted" if without else "read_committed"
    )
    if without:
        stage.doubled("M1", "copied by A and again by B", "A가 복사하고 B가 다시 복사했다")
    stage.narrate(
        f"Copier B takes A's place and begins at the group's offset, which is {first}. "
        + (
            "It copies M1 once more, then M2, and commits offset 2."
            if without
            else "By taking over the transactional id it had A's transaction aborted. It copies M1 and M2 and sends offset 2 in "
            f"one transaction, which commits: the group is at {last}."
        ),
        f"복사기 B가 A를 대신해 그룹의 오프셋 {first}에서 시작한다. "
        + (
            "M1을 다시 복사하고 M2를 복사한 다음 2번 오프셋을 커밋한다."
            if without
            else "트랜잭셔널 ID를 이어받을 때 A의 트랜잭션은 중단되었다. M1과 M2의 복사본과 2번 오프셋을 한 트랜잭션으로 커밋한다. "
            f"그룹의 오프셋은 {last}이다."
        ),
    )
    stage.point(
        (first, last) == (0, 2) and read == (["M1", "M1", "M2"] if without else ["M1", "M2"]),
        "Without a transaction a copy and its offset are two writes, and a crash between them copies M1 twice."
        if without
        else "The offset is committed with the copies or not at all, so each message is copied exactly once.",
        "트랜잭션이 없으면 복사본과 오프셋은 따로 기록되고, 그 사이에 죽으면 M1이 두 번 복사된다."
        if without
        else "오프셋은 복사본과 함께 커밋되거나 함께 버려지므로, 각 메시지는 정확히 한 번 복사된다.",
    )


async def _take_over(stage: Stage, client: str) -> TransactionalProducer | None:
    """Before it looks where to begin: what another one has open is over then."""
    if stage.has(Option.WITHOUT_TRANSACTIONS):
        return None
    producer = await stage.transactional(client, TRANSACTIONAL_ID)
    await producer.init()
    return producer


async def _copy(stage: Stage, client: str, producer: TransactionalProducer | None, names: Sequence[str]) -> None:
    if producer is None:
        await stage.send(*names, client=client, partition=COPY)
        return
    await producer.begin()
    messages = [await producer.send(name, COPY) for name in names]
    await stage.until(lambda: all(message.is_over for message in messages))
    await producer.send_offset(GROUP, SOURCE, len(names))


async def _commit_offset(stage: Stage, client: str, offset: int) -> None:
    async def commit(flow: AsyncClient) -> None:
        await Admin(flow).alter_group_offsets(GROUP, {(stage.topic, SOURCE): OffsetAndMetadata(offset)})

    await stage.do(client, commit)
    stage.note_of(client, f"commits offset {offset} of {GROUP}", f"{GROUP}의 {offset}번 오프셋 커밋")


async def _committed(stage: Stage) -> int:
    """Of the group; 0 if it has committed nothing."""
    key = stage.topic, SOURCE

    async def ask(flow: AsyncClient) -> int:
        answer = (await Admin(flow).list_group_offsets({GROUP: [key]}))[GROUP]
        if isinstance(answer, KafkaError):
            raise answer
        found = answer.get(key)
        return found.offset if isinstance(found, OffsetAndMetadata) else 0

    return await stage.do("operator", ask)
