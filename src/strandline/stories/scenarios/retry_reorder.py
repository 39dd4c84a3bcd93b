"""retry-reorder: several requests in flight, and the first of them fails (S22)."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.stories.clients import SendOptions
from strandline.stories.frames import BilingualText
from strandline.stories.options import Option
from strandline.stories.registry import story
from strandline.stories.request_capture import PRODUCE, CapturedRequest, RequestCapture
from strandline.stories.stage import Stage

IN_FLIGHT = 5


@story(
    "retry-reorder",
    en="The first of two requests in flight fails and is sent again: M2 before M1, unless sequence numbers are kept",
    ko="전송 중인 두 요청 중 첫 번째가 실패해 재시도되면, 시퀀스 번호가 없을 때 M2가 M1보다 앞선다",
    options=(Option.WITHOUT_IDEMPOTENCE,),
    note=BilingualText(
        "The notes say that enable.idempotence=false keeps no order, without an example; this is one.",
        "노트는 enable.idempotence=false가 순서를 보장하지 않는다고만 한다. 이 이야기가 그 예이다.",
    ),
)
async def retry_reorder(stage: Stage) -> None:
    without = stage.has(Option.WITHOUT_IDEMPOTENCE)
    how: SendOptions = {"idempotent": not without, "max_in_flight_requests_per_connection": IN_FLIGHT}
    await stage.open(brokers=("X", "Y"), min_isr=2)
    stage.pin("acks", "all")
    stage.pin("enable.idempotence", str(not without).lower())
    stage.pin("max.in.flight.requests.per.connection", IN_FLIGHT)
    x, y = stage["X"], stage["Y"]
    produced = RequestCapture(stage, "producer", "X", PRODUCE)

    await stage.send("M0", **how)
    await stage.settle()
    stage.narrate(
        "X leads, Y follows, min.insync.replicas is 2. M0 is committed. The producer does not wait for an answer before it sends "
        f"on: up to {IN_FLIGHT} requests may be in flight"
        + ("." if without else ", and each batch carries the producer's id and a sequence number: M0 has 0."),
        "X가 리더, Y가 팔로워이고 min.insync.replicas는 2이다. M0는 커밋되었다. 프로듀서는 응답을 기다리지 않고 요청을 "
        f"{IN_FLIGHT}개까지 이어서 보낸다."
        + ("" if without else " 배치마다 프로듀서 ID와 시퀀스 번호가 붙으며, M0는 0번이다."),
    )

    stage.kill("Y")
    await stage.until(lambda: stage.isr == ["X"])
    stage.hold("X", "producer")
    m1 = await stage.send_soon("M1", **how)
    await stage.until(lambda: _errors(produced) == [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS])
    stage.note_of("X", "answers M1 with NOT_ENOUGH_REPLICAS", "M1에 NOT_ENOUGH_REPLICAS로 응답")
    stage.narrate(
        "Y fails and leaves the ISR: one in sync is fewer than two. M1 arrives and X refuses it (NOT_ENOUGH_REPLICAS), which is "
        "retriable. The answer is slow to reach the producer.",
        "Y가 다운되어 ISR에서 빠지고, 동기화된 것은 둘보다 적은 하나뿐이다. M1이 도착하지만 X는 거절한다(NOT_ENOUGH_REPLICAS). "
        "재시도 가능한 오류다. 그 응답은 아직 프로듀서에게 닿지 않았다.",
    )

    stage.restart("Y")
    await stage.settle()
    stage.narrate(
        "Meanwhile Y is back, has caught up and is in the ISR again: X takes writes again.",
        "그 사이 Y가 복구되어 따라잡고 ISR에 복귀한다. X는 다시 쓰기를 받는다.",
    )

    m2 = await stage.send_soon("M2", **how)
    if without:
        await stage.until(lambda: x.names == ["M0", "M2"])
    else:
        await stage.until(lambda: _errors(produced)[2:] == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])
        stage.note_of("X", "answers M2 with OUT_OF_ORDER_SEQUENCE_NUMBER", "M2에 OUT_OF_ORDER_SEQUENCE_NUMBER로 응답")
    stage.narrate(
        "M2 follows M1 on the same connection, before the producer knows of M1's fate. "
        + (
            "X has no way to know that something is missing and appends M2 at offset 1."
            if without
            else "It carries sequence number 2, but X has 0 as the last one and wants 1: it refuses M2 too "
            "(OUT_OF_ORDER_SEQUENCE_NUMBER)."
        ),
        "프로듀서가 M1의 결과를 알기 전에, 같은 연결로 M2가 뒤따른다. "
        + (
            "앞의 것이 빠졌음을 알 길이 없는 X는 M2를 1번 오프셋에 저장한다."
            if without
            else "시퀀스 번호는 2인데, X가 마지막으로 받은 것은 0이므로 1이 와야 한다. X는 M2도 "
            "거절한다(OUT_OF_ORDER_SEQUENCE_NUMBER)."
        ),
    )

    stage.release()
    await stage.until(lambda: m1.is_over and m2.is_over)
    await stage.settle()
    read = await stage.read()
    expected = ["M0", "M2", "M1"] if without else ["M0", "M1", "M2"]
    if without:
        stage.reordered("M1", "sent before M2, and behind it in the log", "M2보다 먼저 보냈지만 로그에서는 뒤에 있다")
    stage.narrate(
        "The answers arrive. "
        + (
            "M2 is written; M1 is sent again, and goes to offset 2, behind M2."
            if without
            else "The producer sends both again in the order of their sequence numbers: M1 goes to offset 1, M2 to offset 2."
        ),
        "응답이 도착한다. "
        + (
            "M2는 저장되었고, 재시도된 M1은 M2 뒤인 2번 오프셋에 저장된다."
            if without
            else "프로듀서는 둘을 시퀀스 번호 순서대로 다시 보낸다. M1은 1번, M2는 2번 오프셋에 저장된다."
        ),
    )
    kept = m1.is_acknowledged and m2.is_acknowledged and read == x.names == y.names == expected
    if without:
        stage.point(
            kept,
            "Without idempotence, and with more than one request in flight, a retry puts M2 before M1.",
            "멱등성 없이 여러 요청을 이어서 보내면, 재시도 때문에 M2가 M1보다 앞에 놓인다.",
        )
    else:
        stage.point(
            kept,
            "With idempotence a leader takes a batch only after the one before it: the order stays, with five requests in flight.",
            "멱등성이 있으면 리더는 앞 배치 다음에만 뒤 배치를 받는다. 다섯 개의 요청을 이어서 보내도 순서는 지켜진다.",
        )


def _errors(produced: RequestCapture) -> list[ErrorCode]:
    """Of each answer so far."""
    return [_error(exchange) for exchange in produced.exchanges if exchange.response is not None]


def _error(exchange: CapturedRequest) -> ErrorCode:
    (topic,) = exchange.response.responses
    (partition,) = topic.partition_responses
    return ErrorCode(partition.error_code)
