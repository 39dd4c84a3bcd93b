"""transaction-commit: messages of two partitions, all of them or none (TXN-T24, TXN-T30, TXN-P7)."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.stories.clients import IsolationLevel, SentMessage
from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.stage import Stage
from strandline.stories.transactions import TransactionalProducer

TRANSACTIONAL_ID = "transfer-1"
DEBIT, CREDIT = "debit", "credit"


@story(
    "transaction-commit",
    en="A debit in one partition and a credit in another: both are read, or neither",
    ko="한 파티션의 출금과 다른 파티션의 입금은 둘 다 읽히거나 둘 다 읽히지 않는다",
    options=(Option.WITHOUT_TRANSACTIONS,),
)
async def transaction_commit(stage: Stage) -> None:
    without = stage.has(Option.WITHOUT_TRANSACTIONS)
    await stage.open(brokers=("1", "2", "3"), assignments={0: ["1", "2"], 1: ["2", "1"]})
    if without:
        stage.pin("enable.idempotence", "true")
    else:
        stage.pin("transactional.id", TRANSACTIONAL_ID)
    await _send(stage, "producer A", [DEBIT])
    await stage.settle()
    stage.narrate(
        "A transfer is a debit in partition 0 and a credit in partition 1. "
        + (
            "Producer A has no transactions: it writes the debit first."
            if without
            else f"Producer A takes over the transactional id {TRANSACTIONAL_ID}, begins a transaction and writes the debit."
        ),
        "이체는 파티션 0의 출금(debit)과 파티션 1의 입금(credit)이다. "
        + (
            "프로듀서 A는 트랜잭션을 쓰지 않고 출금부터 기록한다."
            if without
            else f"프로듀서 A는 트랜잭셔널 ID {TRANSACTIONAL_ID}를 이어받아 트랜잭션을 시작하고 출금을 기록한다."
        ),
    )

    stage.kill("producer A")
    half = await _read(stage, "consumer C")
    stage.narrate(
        "A's process is killed before it has written the credit. "
        + (
            "Consumer C reads the debit: money is gone from one account and on no other."
            if without
            else "Consumer C (read_committed) reads nothing of the transfer: partition 0 is stable up to offset 0."
        ),
        "입금을 기록하기 전에 A의 프로세스가 강제 종료된다. "
        + (
            "컨슈머 C는 출금을 읽는다. 한 계좌에서 빠져나간 돈이 어느 계좌에도 없다."
            if without
            else "컨슈머 C(read_committed)는 이체를 전혀 읽지 못한다. 파티션 0은 0번 오프셋까지만 안정적이다."
        ),
    )

    producer, messages = await _send(stage, "producer B", [DEBIT, CREDIT])
    await stage.settle()
    undecided = await _read(stage, "consumer C")
    if without:
        stage.doubled(DEBIT, "written by A and again by B", "A가 쓰고 B가 다시 썼다")
    stage.narrate(
        "Producer B starts in A's place and makes the transfer again. "
        + (
            "The credit is there, and the debit is there twice."
            if without
            else "By taking over the transactional id it had the coordinator abort what A left open: partition 0 has an Abort "
            "marker. B's debit and credit are on all replicas, and nothing of them is read yet."
        ),
        "프로듀서 B가 A를 대신해 시작하고 이체를 다시 한다. "
        + (
            "입금은 기록되었지만 출금은 두 번 기록되었다."
            if without
            else "B가 트랜잭셔널 ID를 이어받을 때 코디네이터가 A의 열린 트랜잭션을 중단해, 파티션 0에 Abort 마커가 있다. B의 "
            "출금과 입금은 모두 복제되었지만 아직 읽히지 않는다."
        ),
    )
    if without:
        stage.point(
            half == [DEBIT] and undecided == [DEBIT, DEBIT, CREDIT],
            "Without transactions each message is committed for itself: half a transfer was read, and its retry is a second debit.",
            "트랜잭션이 없으면 메시지마다 따로 커밋된다. 절반의 이체가 읽혔고, 재시도는 두 번째 출금이 되었다.",
        )
        return

    assert producer is not None
    await producer.commit()
    await stage.settle()
    whole = await _read(stage, "consumer C")
    stage.narrate(
        "B commits. The decision is one record in the log of its coordinator; once that is committed each partition gets a Commit "
        "marker, and the transfer is read as a whole. What A wrote is left out.",
        "B가 커밋한다. 결정은 코디네이터 로그의 레코드 하나이다. 이 레코드가 커밋되면 각 파티션에 Commit 마커가 기록되고, 이체 "
        "전체가 읽힌다. A가 쓴 것은 제외된다.",
    )
    stage.point(
        half == undecided == [] and whole == [DEBIT, CREDIT] and all(message.is_acknowledged for message in messages),
        "All messages of a transaction become readable by one decision, in all partitions, or none of them ever does.",
        "트랜잭션의 모든 메시지는 하나의 결정으로 모든 파티션에서 읽을 수 있게 되거나, 하나도 읽히지 않는다.",
    )


async def _send(
    stage: Stage, client: str, names: Sequence[str]
) -> tuple[TransactionalProducer | None, list[SentMessage]]:
    if stage.has(Option.WITHOUT_TRANSACTIONS):
        return None, [
            message
            for partition, name in enumerate(names)
            for message in await stage.send(name, client=client, partition=partition)
        ]
    producer = await stage.transactional(client, TRANSACTIONAL_ID)
    await producer.init()
    await producer.begin()
    messages = [await producer.send(name, partition) for partition, name in enumerate(names)]
    await stage.until(lambda: all(message.is_over for message in messages))
    return producer, messages


async def _read(stage: Stage, client: str) -> list[str]:
    """What it finds in both partitions."""
    level: IsolationLevel = "read_uncommitted" if stage.has(Option.WITHOUT_TRANSACTIONS) else "read_committed"
    return [
        name for partition in (0, 1) for name in await stage.read(client, partition=partition, isolation_level=level)
    ]
