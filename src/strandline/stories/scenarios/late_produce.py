"""late-produce: a request that was under way when its transaction ended arrives afterwards (TXN-V2, TXN-V3, KIP-890)."""

from __future__ import annotations

from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.stage import Stage

TRANSACTIONAL_ID = "orders-1"
GIVE_UP_MS = 1_000
TIMEOUT_S = 60
"""`transaction.timeout.ms` of a producer, unless it is set."""


@story(
    "late-produce",
    en="A Produce arrives after its transaction was aborted: unless the leader asks the coordinator, it opens one that nobody ends",
    ko="트랜잭션이 중단된 뒤 늦게 도착한 Produce. 리더가 코디네이터에게 확인하지 않으면 아무도 끝내지 않을 트랜잭션이 열린다",
    options=(Option.WITHOUT_VERIFICATION,),
)
async def late_produce(stage: Stage) -> None:
    without = stage.has(Option.WITHOUT_VERIFICATION)
    verifies = {"transaction.partition.verification.enable": str(not without).lower()}
    await stage.open(brokers=("1", "2", "3"), node_config=verifies)
    stage.pin("transactional.id", TRANSACTIONAL_ID)
    stage.pin("delivery.timeout.ms", GIVE_UP_MS)
    leader = stage["1"]
    a = await stage.transactional(
        "producer A", TRANSACTIONAL_ID, delivery_timeout_ms=GIVE_UP_MS, request_timeout_ms=GIVE_UP_MS
    )

    await a.init()
    await a.begin()
    m1 = await a.send("M1")
    await stage.until(lambda: m1.is_over)
    stage.hold("producer A", "1")
    m2 = await a.send("M2")
    await stage.until(lambda: m2.is_over)
    await stage.settle()
    stage.narrate(
        f"Producer A has a transaction open with M1. Its request with M2 is stuck in the network; after {GIVE_UP_MS} ms the "
        f"producer gives up ({m2.error_name}).",
        f"프로듀서 A의 트랜잭션에 M1이 있다. M2를 담은 요청은 네트워크에 묶여 있고, 프로듀서는 {GIVE_UP_MS} ms 뒤 "
        f"포기한다({m2.error_name}).",
    )

    await a.abort()
    await stage.until(lambda: leader.names == ["M1", "Abort"])
    await stage.settle()
    stage.narrate(
        "It aborts. The coordinator has the Abort marker written: for it and for the producer this transaction is over.",
        "프로듀서가 트랜잭션을 중단한다. 코디네이터가 Abort 마커를 기록하게 하고, 코디네이터와 프로듀서에게 이 트랜잭션은 끝났다.",
    )

    stage.release()
    if without:
        await stage.until(lambda: leader.end == 3)
    else:
        await stage.wait(1)
    await stage.settle()
    stage.narrate(
        "Now the request with M2 arrives. Its epoch and its sequence number are right. "
        + (
            "The leader appends it, and so opens a transaction at offset 2."
            if without
            else "But no transaction is open here, so the leader asks the coordinator first. The coordinator knows of none: M2 is "
            "refused."
        ),
        "이제 M2를 담은 요청이 도착한다. 에포크와 시퀀스 번호는 맞다. "
        + (
            "리더는 이를 기록하고, 2번 오프셋에서 트랜잭션이 열린다."
            if without
            else "그러나 이 파티션에 열린 트랜잭션이 없으므로 리더는 먼저 코디네이터에게 묻는다. 코디네이터는 모른다고 하고, "
            "M2는 거절된다."
        ),
    )

    await stage.send("M3", client="producer B")
    await stage.wait(TIMEOUT_S + 10)
    await stage.settle()
    read = await stage.read("consumer", isolation_level="read_committed")
    if without:
        stage.lost(
            "M3",
            "committed, and no consumer with read_committed ever gets it",
            "커밋되었지만 read_committed 컨슈머는 영영 받지 못한다",
        )
    stage.narrate(
        f"Producer B sends M3, without a transaction. {TIMEOUT_S + 10} s pass, more than the timeout of any transaction here. "
        + (
            "No coordinator knows of the one at offset 2, so none ends it: the last stable offset stays at 2, and the consumer "
            "never gets M3. `strandline transactions find-hanging` names it, and `abort` ends it."
            if without
            else "Nothing is open, and the consumer (read_committed) reads M3."
        ),
        f"프로듀서 B가 트랜잭션 없이 M3을 보낸다. 여기 있는 어떤 트랜잭션의 타임아웃보다 긴 {TIMEOUT_S + 10}초가 지난다. "
        + (
            "2번 오프셋의 트랜잭션을 아는 코디네이터가 없으므로 아무도 끝내지 않는다. LSO는 2에 머물고 컨슈머는 M3을 받지 못한다. "
            "`strandline transactions find-hanging`이 찾아내고 `abort`가 끝낸다."
            if without
            else "열린 트랜잭션이 없으므로 컨슈머(read_committed)는 M3을 읽는다."
        ),
    )
    if without:
        stage.point(
            read == [] and leader.names == ["M1", "Abort", "M2", "M3"] and leader.last_stable_of(0) == 2,
            "Without verification a late request leaves a transaction that hangs: it holds back all readers of committed records.",
            "검증이 없으면 늦게 도착한 요청이 끝나지 않는 트랜잭션을 남기고, 모든 read_committed 컨슈머를 막는다.",
        )
    else:
        stage.point(
            read == ["M3"] and leader.names == ["M1", "Abort", "M3"],
            "A leader opens a transaction only if its coordinator knows of it: what comes too late is refused (KIP-890).",
            "리더는 코디네이터가 아는 트랜잭션만 연다. 너무 늦게 온 요청은 거절된다(KIP-890).",
        )
