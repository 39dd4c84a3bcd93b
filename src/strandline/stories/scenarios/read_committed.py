"""read-committed: why a reader of committed records stops before an open transaction (TXN-P7, TXN-P9)."""

from __future__ import annotations

from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.stage import Stage


@story(
    "read-committed",
    en="A consumer with read_committed stops at the last stable offset: else it would read what is aborted later",
    ko="read_committed 컨슈머는 마지막 안정 오프셋(LSO)에서 멈춘다. 그렇지 않으면 나중에 중단될 메시지를 읽게 된다",
    options=(Option.WITHOUT_LAST_STABLE_OFFSET,),
)
async def read_committed(stage: Stage) -> None:
    without = stage.has(Option.WITHOUT_LAST_STABLE_OFFSET)
    await stage.open(brokers=("1", "2", "3"))
    stage.pin("transactional.id", "orders-1")
    producer = await stage.transactional("producer A", "orders-1")

    await producer.init()
    await producer.begin()
    m1 = await producer.send("M1")
    await stage.until(lambda: m1.is_over)
    await stage.settle()
    stage.narrate(
        "Producer A begins a transaction and sends M1. All replicas have it: the high watermark is 1. "
        + (
            "The transaction is open, but no reader is held back by that."
            if without
            else "But the transaction is open, so nothing from its first message on is stable: the last stable offset (LSO) is 0."
        ),
        "프로듀서 A가 트랜잭션을 시작하고 M1을 보낸다. 모든 리플리카가 복제해 하이워터마크는 1이다. "
        + (
            "트랜잭션이 열려 있지만 어떤 컨슈머도 기다리게 하지 않는다."
            if without
            else "그러나 트랜잭션이 열려 있으므로 그 첫 메시지부터는 안정적이지 않다. 마지막 안정 오프셋(LSO)은 0이다."
        ),
    )

    await stage.send("M2", client="producer B")
    await stage.settle()
    stage.narrate(
        "Producer B, which has no transactions, sends M2 behind it. M2 is committed, at offset 1."
        + ("" if without else " The LSO stays at 0."),
        "트랜잭션을 쓰지 않는 프로듀서 B가 뒤이어 M2를 보낸다. M2는 1번 오프셋에 커밋된다."
        + ("" if without else " LSO는 0에 머문다."),
    )

    uncommitted = await stage.read("consumer U")
    early = await stage.read("consumer C", isolation_level="read_committed")
    stage.narrate(
        "Consumer U reads with read_uncommitted, up to the high watermark: M1 and M2. Consumer C reads with read_committed. "
        + (
            "Without an LSO it also reads up to the high watermark, and no list of aborted transactions has M1 yet."
            if without
            else "It is given nothing: what becomes of M1 is not decided, and M2 may not be read before M1."
        ),
        "컨슈머 U는 read_uncommitted이므로 하이워터마크까지, 즉 M1과 M2를 읽는다. 컨슈머 C는 read_committed이다. "
        + (
            "LSO가 없으면 C도 하이워터마크까지 읽으며, 중단된 트랜잭션 목록에 M1은 아직 없다."
            if without
            else "C는 아무것도 받지 못한다. M1의 운명이 정해지지 않았고, M2를 M1보다 먼저 읽을 수도 없다."
        ),
    )

    await producer.abort()
    await stage.settle()
    if without:
        stage.dirty(
            "M1",
            "aborted, but consumer C has read it as committed",
            "중단되었지만 컨슈머 C는 커밋된 것으로 읽었다",
        )
    stage.narrate(
        "Producer A aborts. Its coordinator writes an Abort marker to the partition, at offset 2. M1 stays in the log."
        + ("" if without else " Nothing is open any more: the LSO is the high watermark."),
        "프로듀서 A가 트랜잭션을 중단한다. 코디네이터가 파티션의 2번 오프셋에 Abort 마커를 기록한다. M1은 로그에 남는다."
        + ("" if without else " 열린 트랜잭션이 없으므로 LSO는 하이워터마크와 같아진다."),
    )

    late = await stage.read("consumer D", isolation_level="read_committed")
    stage.narrate(
        "Consumer D reads with read_committed from the start: the broker names the aborted transaction beside the records, and the "
        "consumer leaves M1 out. "
        + ("C and D have read different things." if without else "It reads M2 alone, and so does C from now on."),
        "컨슈머 D가 read_committed로 처음부터 읽는다. 브로커가 레코드와 함께 중단된 트랜잭션을 알려 주므로 D는 M1을 건너뛴다. "
        + ("C와 D가 읽은 내용이 다르다." if without else "M2만 읽으며, 이제 C도 마찬가지이다."),
    )
    if without:
        stage.point(
            uncommitted == early == ["M1", "M2"] and late == ["M2"],
            "Without a last stable offset C has read M1, which was aborted: a dirty read, though it asked for committed records.",
            "LSO가 없으면 C는 커밋된 메시지만 요청했는데도 중단된 M1을 읽는다. 더티 리드이다.",
        )
    else:
        stage.point(
            uncommitted == ["M1", "M2"] and early == [] and late == ["M2"],
            "What may still be aborted is not read: every reader of committed records sees the same, at the price of waiting.",
            "중단될 수 있는 메시지는 읽히지 않는다. 기다리는 대신 read_committed 컨슈머는 모두 같은 메시지를 본다.",
        )
