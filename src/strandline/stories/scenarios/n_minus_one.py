"""n-minus-one: with N replicas N-1 brokers may fail, and clients go on with the survivor (S4)."""

from __future__ import annotations

from strandline.stories.frames import BilingualText
from strandline.stories.registry import story
from strandline.stories.stage import Stage


@story(
    "n-minus-one",
    en="Three replicas, two brokers die one after the other: clients go on with the survivor, nothing committed is lost",
    ko="복제본 3개에서 브로커 두 대가 차례로 죽어도, 남은 한 대와 계속 메시지를 주고받고 유실이 없다",
    note=BilingualText(
        "N-1 holds for min.insync.replicas=1 and failures one after the other, and for brokers only: the controllers are apart, "
        "and a majority of them must live.",
        "N-1은 min.insync.replicas=1이고 장애가 차례로 날 때, 그리고 브로커에만 해당한다. "
        "컨트롤러는 따로 있고 그 과반수는 살아 있어야 한다.",
    ),
)
async def n_minus_one(stage: Stage) -> None:
    await stage.open(brokers=("1", "2", "3"), controllers=3)
    stage.pin("acks", "all")

    await stage.send("test message1")
    await stage.settle()
    stage.narrate(
        "peter-test01, one partition, replication factor 3. test message1 is on all three brokers.",
        "peter-test01 토픽, 파티션 1개, 리플리케이션 팩터 3. test message1은 세 브로커 모두에 있다.",
    )

    stage.kill("1")
    second = await stage.send_soon("test message2")
    await stage.until(lambda: stage["2"].leads and stage["3"].epoch == 1)
    stage.narrate(
        "Broker 1, the leader, dies. The controller sees its connections close and no heartbeat come (Apache Kafka waits for the "
        "session timeout), and elects broker 2 from the ISR, in leader epoch 1. "
        "The producer had no answer for test message2 and asks who leads now.",
        "리더인 브로커 1이 죽는다. 컨트롤러는 하트비트가 끊긴 것을 알고 ISR에 있던 브로커 2를 리더에포크 1의 리더로 선출한다. "
        "test message2의 응답을 받지 못한 프로듀서는 새 리더를 찾는다.",
    )

    await stage.until(lambda: second.is_over)
    await stage.settle()
    stage.narrate(
        "test message2 goes to broker 2, broker 3 copies it: committed.",
        "test message2는 브로커 2에 저장되고 브로커 3이 복제한다. 커밋되었다.",
    )

    stage.kill("2")
    third = await stage.send_soon("test message3")
    await stage.until(lambda: stage["3"].leads)
    await stage.until(lambda: third.is_over)
    read = await stage.read()
    stage.narrate(
        "Broker 2 dies too: N-1 of N are gone. Broker 3 is elected, in leader epoch 2, takes test message3, "
        "and a consumer reads all three messages.",
        "브로커 2도 죽어 N개 중 N-1개가 장애이다. 브로커 3이 리더에포크 2의 리더로 선출되어 test message3를 저장하고, "
        "컨슈머는 세 메시지를 모두 읽는다.",
    )
    alone = stage.isr == ["3"] and read == ["test message1", "test message2", "test message3"]

    stage.restart("1", "2")
    await stage.settle()
    read = await stage.read("consumer B")
    stage.narrate(
        "The brokers return, copy what they missed, and are in the ISR again.",
        "브로커들이 돌아와 그동안의 메시지를 복제하고 다시 ISR에 들어온다.",
    )
    stage.point(
        alone
        and second.is_acknowledged
        and third.is_acknowledged
        and read == ["test message1", "test message2", "test message3"]
        and all(node.names == read for node in stage.brokers.values()),
        "With three replicas two brokers may fail: no committed message is lost, and clients went on with the third.",
        "복제본이 3개이면 브로커 두 대의 장애를 견딘다. 커밋된 메시지는 유실되지 않았고, 클라이언트는 남은 한 대와 계속했다.",
    )
