"""zombie-fencing: a producer that was taken for dead comes back while another one does its work (TXN-T11, TXN-T12)."""

from __future__ import annotations

from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.stage import Stage

TRANSACTIONAL_ID = "copier-1"


@story(
    "zombie-fencing",
    en="A producer that was taken for dead comes back; the epoch of its transactional id is what keeps it out",
    ko="죽은 줄 알았던 프로듀서가 돌아온다. 트랜잭셔널 ID의 에포크가 이 좀비를 막는다",
    options=(Option.WITHOUT_EPOCH_BUMP,),
)
async def zombie_fencing(stage: Stage) -> None:
    without = stage.has(Option.WITHOUT_EPOCH_BUMP)
    await stage.open(brokers=("1", "2", "3"), node_config={"transaction.partition.verification.enable": "false"})
    stage.pin("transactional.id", TRANSACTIONAL_ID)
    leader = stage["1"]
    a = await stage.transactional("producer A", TRANSACTIONAL_ID)
    b = await stage.transactional("producer B", TRANSACTIONAL_ID)

    await a.init()
    await a.begin()
    m1 = await a.send("M1")
    await stage.until(lambda: m1.is_over)
    await stage.settle()
    stage.narrate(
        f"Producer A copies messages under the transactional id {TRANSACTIONAL_ID}. Its producer id has epoch 0. M1 is written, "
        "M2 is still to come. Leaders do not ask the coordinator here, so that the epoch alone is at work.",
        f"프로듀서 A가 트랜잭셔널 ID {TRANSACTIONAL_ID}로 메시지를 복사한다. 에포크는 0이다. M1은 기록했고 M2가 남아 있다. "
        "에포크의 역할만 보이도록, 여기서는 리더가 코디네이터에게 확인하지 않는다.",
    )

    stage.pause("producer A")
    await b.init()
    await stage.settle()
    stage.narrate(
        "A freezes (a long garbage collection), its supervisor takes it for dead and starts producer B under the same id. B asks "
        "for the id: the coordinator aborts what A has open "
        + (
            "but, without an epoch bump, gives B the very producer id and epoch that A has."
            if without
            else "and raises the epoch: B has epoch 2, because the abort took epoch 1."
        ),
        "A가 멈추자(긴 GC) 관리자는 A가 죽었다고 보고 같은 ID로 프로듀서 B를 시작한다. B가 ID를 요청하면 코디네이터는 A가 열어 둔 "
        "트랜잭션을 중단하고, "
        + (
            "에포크를 올리지 않으므로 A와 똑같은 프로듀서 ID와 에포크를 B에게 준다."
            if without
            else "에포크를 올린다. 중단이 에포크 1을 썼으므로 B의 에포크는 2이다."
        ),
    )

    await b.begin()
    again = await b.send("M1")
    await stage.until(lambda: again.is_over)
    await stage.settle()
    stage.narrate(
        "B begins a transaction and does the work again, from M1 on. "
        + (
            "Its sequence number is 0, as that of A's M1 was: the leader takes it for a retry, acknowledges it at offset 0, and "
            "writes nothing. That M1 is aborted."
            if without
            else "M1 is written once more, at offset 2; the first one is aborted."
        ),
        "B가 트랜잭션을 시작하고 M1부터 작업을 다시 한다. "
        + (
            "시퀀스 번호가 A의 M1과 같은 0이라, 리더는 재시도로 여겨 0번 오프셋으로 응답하고 아무것도 기록하지 않는다. 그 M1은 "
            "이미 중단되었다."
            if without
            else "M1은 2번 오프셋에 다시 기록된다. 첫 번째 M1은 중단되었다."
        ),
    )

    stage.resume("producer A")
    zombie = await a.send("M2 of A")
    await stage.until(lambda: zombie.is_over)
    await stage.settle()
    stage.narrate(
        "A wakes up and goes on where it was: it sends its M2. "
        + (
            "Nothing tells A from B: the leader appends it, into the transaction of B."
            if without
            else f"The leader knows epoch 2 of this producer id, A has epoch 0: it refuses ({zombie.error_name})."
        ),
        "A가 깨어나 하던 일을 계속하며 M2를 보낸다. "
        + (
            "A와 B를 구별할 것이 없으므로, 리더는 그것을 B의 트랜잭션 안에 기록한다."
            if without
            else f"리더는 이 프로듀서 ID의 에포크가 2임을 아는데 A의 에포크는 0이다. 리더가 거절한다({zombie.error_name})."
        ),
    )

    m2 = await b.send("M2")
    await stage.until(lambda: m2.is_over)
    await b.commit()
    await stage.settle()
    if without:
        stage.lost("M1", "acknowledged to B, aborted with A", "B는 ack를 받았지만 A와 함께 중단되었다")
    read = await stage.read("consumer", isolation_level="read_committed")
    stage.narrate(
        "B sends M2 and commits. "
        + (
            "Its M2 counts as a retry of what A sent. The consumer reads what the zombie wrote, and no M1."
            if without
            else "The consumer reads M1 and M2, each once."
        ),
        "B가 M2를 보내고 커밋한다. "
        + (
            "B의 M2는 A가 보낸 것의 재시도로 여겨진다. 컨슈머는 좀비가 쓴 것을 읽고 M1은 읽지 못한다."
            if without
            else "컨슈머는 M1과 M2를 한 번씩 읽는다."
        ),
    )

    if without:
        stage.point(
            read == ["M2 of A"] and m2.is_acknowledged and again.offset == 0 and "M2" not in leader.names,
            "Without an epoch bump two producers with one id are one to the broker: B's commit lacks M1, and has a zombie's M2.",
            "에포크를 올리지 않으면 같은 ID의 두 프로듀서를 브로커는 하나로 본다. B의 커밋에는 M1이 없고 좀비의 M2가 있다.",
        )
        return
    await a.abort()
    stage.narrate(
        f"A tries to abort and begin anew: {a.error_name}. It must end; nothing of what it has done since is in the log.",
        f"A가 중단하고 다시 시작하려 하지만 {a.error_name} 오류를 받는다. A는 종료해야 하며, 그 사이에 한 일은 로그에 남지 않았다.",
    )
    stage.point(
        read == ["M1", "M2"] and not zombie.is_acknowledged and "M2 of A" not in leader.names and a.error_name,
        "Whoever takes a transactional id over gets a newer epoch, and nothing of an older one is taken any more.",
        "트랜잭셔널 ID를 이어받으면 더 높은 에포크를 받고, 이전 에포크의 요청은 더 이상 받아들여지지 않는다.",
    )
