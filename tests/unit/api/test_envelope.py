"""The controller handles a request in an envelope as if the client had sent it here."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="misc, union-attr"

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from strandline.api import envelope, table
from strandline.api.context import RequestContext
from strandline.api.requests import forwarding
from strandline.api.requests.large_requests import INLINE_BYTES_MAX
from strandline.api.requests.pending_reply import PendingReply
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages
from strandline.wire.headers import read_response_header, request_header
from strandline.wire.message import Message

CREATE_TOPICS, METADATA, DESCRIBE_QUORUM = 19, 3, 55
Create, Created = messages.request(CREATE_TOPICS), messages.response(CREATE_TOPICS)


def create(name: str = "t") -> Any:
    return Create(topics=[Create.CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=1000)


def framed(message: Any, api_key: int = CREATE_TOPICS, version: int = 7) -> bytes:
    return request_header(api_key, version, 77, "client") + messages.encode_request(api_key, version, message)


def wrapped(frame: bytes, **fields: Any) -> Any:
    values = {"request_principal": forwarding.anonymous(), "client_host_address": bytes([10, 0, 0, 9])} | fields
    sent = messages.request(envelope.KEY)(request_data=frame, **values)
    return messages.decode_request(envelope.KEY, 0, messages.encode_request(envelope.KEY, 0, sent))


async def call(broker: Any, frame: bytes, **fields: Any) -> Any:
    outcome = envelope.handle(wrapped(frame, **fields), broker.context(envelope.KEY, 0, "CONTROLLER"))
    if inspect.isawaitable(outcome):
        outcome = await outcome
    assert isinstance(outcome, Message)
    return messages.decode_response(envelope.KEY, 0, messages.encode_response(envelope.KEY, 0, outcome))


def unwrapped(reply: Any, api_key: int = CREATE_TOPICS, version: int = 7) -> Any:
    assert reply.error_code == ErrorCode.NONE
    correlation_id, position = read_response_header(api_key, version, reply.response_data)
    assert correlation_id == 77
    return messages.decode_response(api_key, version, reply.response_data, position)


@pytest.fixture
def script(monkeypatch) -> Callable[[Any], list[RequestContext]]:
    """Have CreateTopics do something else; the contexts it was called with."""

    def use(handle: Callable[[Any, RequestContext], Any]) -> list[RequestContext]:
        seen: list[RequestContext] = []

        def noted(request: Any, ctx: RequestContext) -> Any:
            seen.append(ctx)
            return handle(request, ctx)

        api = table.CONTROLLER_APIS[CREATE_TOPICS]._replace(handle=noted)
        monkeypatch.setitem(table.CONTROLLER_APIS, CREATE_TOPICS, api)
        return seen

    return use


def answer(code: ErrorCode = ErrorCode.NONE) -> Any:
    return Created(topics=[Created.CreatableTopicResult(name="t", error_code=code)])


@pytest.mark.parametrize("version", [2, 5, 7])
async def test_a_topic_is_created(broker, version):
    reply = unwrapped(await call(broker, framed(create(), version=version)), version=version)
    assert [(topic.name, topic.error_code) for topic in reply.topics] == [("t", ErrorCode.NONE)]
    assert "t" in broker.image.topics


async def test_it_is_the_clients_request(broker, script):
    seen = script(lambda request, ctx: answer())
    await call(broker, framed(create(), version=5))
    [ctx] = seen
    assert (ctx.api_key, ctx.version, ctx.client_id, ctx.peer) == (CREATE_TOPICS, 5, "client", "10.0.0.9")
    await call(broker, framed(create()), client_host_address=bytes(15) + b"\1")
    assert seen[1].peer == "::1"


async def test_whatever_a_handler_returns(broker, script):
    body = messages.encode_response(CREATE_TOPICS, 7, answer())

    async def later(reply: Any) -> Any:
        await asyncio.sleep(0)
        return reply

    for outcome in (answer(), body, [body[:3], memoryview(body)[3:]], later(answer()), later(body)):
        script(lambda request, ctx, outcome=outcome: outcome)
        assert unwrapped(await call(broker, framed(create()))).topics[0].name == "t"


@pytest.mark.parametrize("early", [True, False])
async def test_a_reply_that_comes_later(broker, script, early):
    inner: PendingReply[Any] = PendingReply(may_be_overtaken=True)
    script(lambda request, ctx: inner)
    if early:
        inner.complete(answer())
    outcome = envelope.handle(wrapped(framed(create())), broker.context(envelope.KEY, 0))
    assert isinstance(outcome, PendingReply)
    assert outcome.done == early
    assert not outcome.may_be_overtaken
    got: list[Any] = []
    outcome.deliver_to(got.append)
    if not early:
        inner.complete(answer())
    assert unwrapped(got[0]).topics[0].name == "t"


async def test_a_reply_that_nobody_waits_for_is_cancelled(broker, script):
    cancelled: list[bool] = []
    script(lambda request, ctx: PendingReply(may_be_overtaken=False, on_cancel=lambda: cancelled.append(True)))
    envelope.handle(wrapped(framed(create())), broker.context(envelope.KEY, 0)).cancel()
    assert cancelled == [True]


async def test_not_controller_anywhere_in_the_answer_is_told_by_the_envelope(broker, script):
    broker.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply = await call(broker, framed(create()))
    assert (reply.error_code, reply.response_data) == (ErrorCode.NOT_CONTROLLER, None)

    def refuse(request: Any, ctx: RequestContext) -> Any:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    script(refuse)
    assert (await call(broker, framed(create()))).error_code == ErrorCode.NOT_CONTROLLER
    script(lambda request, ctx: messages.encode_response(CREATE_TOPICS, 7, answer(ErrorCode.NOT_CONTROLLER)))
    assert (await call(broker, framed(create()))).error_code == ErrorCode.NOT_CONTROLLER


async def test_other_errors_stay_in_the_answer(broker, script):
    script(lambda request, ctx: answer(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert unwrapped(await call(broker, framed(create()))).topics[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_handler_that_raises_a_kafka_error_has_answered(broker, script):
    def refuse(request: Any, ctx: RequestContext) -> Any:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "no")

    script(refuse)
    [topic] = unwrapped(await call(broker, framed(create()))).topics
    assert (topic.name, topic.error_code, topic.error_message) == ("t", ErrorCode.POLICY_VIOLATION, "no")


@pytest.mark.parametrize("when", ["at once", "later", "in its reply"])
async def test_a_handler_that_breaks_is_noted_and_ends_nothing_else(broker, script, when):
    noted: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: noted.append(context["exception"]))

    async def breaks() -> Any:
        raise RuntimeError("a bug")

    def handle(request: Any, ctx: RequestContext) -> Any:
        if when == "at once":
            raise RuntimeError("a bug")
        return breaks() if when == "later" else Created(topics=[object()])

    script(handle)
    [topic] = unwrapped(await call(broker, framed(create()))).topics
    assert topic.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(noted) == 1


@pytest.mark.parametrize(
    ("frame", "fields", "code"),
    [
        (framed(messages.request(METADATA)(), METADATA, 12), {}, ErrorCode.INVALID_REQUEST),
        (framed(messages.request(18)(), 18, 0), {}, ErrorCode.INVALID_REQUEST),
        (request_header(999, 0, 1, None), {}, ErrorCode.INVALID_REQUEST),
        (framed(create()), {"client_host_address": b"abc"}, ErrorCode.INVALID_REQUEST),
        (framed(create()), {"client_host_address": b""}, ErrorCode.INVALID_REQUEST),
        (framed(create())[:-3], {}, ErrorCode.UNSUPPORTED_VERSION),
        (b"\0\x13", {}, ErrorCode.UNSUPPORTED_VERSION),
        (b"", {}, ErrorCode.UNSUPPORTED_VERSION),
        (request_header(CREATE_TOPICS, 99, 1, None), {}, ErrorCode.UNSUPPORTED_VERSION),
        (framed(create()), {"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (framed(create()), {"request_principal": b""}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (framed(create()), {"request_principal": b"\0\1"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (framed(create()), {"request_principal": b"\0\0\x7fUser"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    ],
)
async def test_an_envelope_that_is_wrong(broker, frame, fields, code):
    reply = await call(broker, frame, **fields)
    assert (reply.error_code, reply.response_data) == (code, None)
    assert "t" not in broker.image.topics


async def call_large(broker: Any, count: int = 2_000, cut: int = 0) -> Any:
    """An embedded request that is read in slices (SEC-L2)."""
    topics = [Create.CreatableTopic(name=f"topic-{i}", num_partitions=1, replication_factor=1) for i in range(count)]
    frame = framed(Create(topics=topics, timeout_ms=1000, validate_only=True))
    assert len(frame) > INLINE_BYTES_MAX
    sent = wrapped(frame[: len(frame) - cut])
    outcome = await envelope.handle(sent, broker.context(envelope.KEY, 0, "CONTROLLER"))
    body = outcome if isinstance(outcome, bytes) else messages.encode_response(envelope.KEY, 0, outcome)
    return messages.decode_response(envelope.KEY, 0, body)


async def test_a_large_request_is_handled_in_slices(broker):
    reply = unwrapped(await call_large(broker))
    assert [topic.name for topic in reply.topics] == [f"topic-{i}" for i in range(2_000)]
    assert {topic.error_code for topic in reply.topics} == {ErrorCode.NONE}


async def test_a_large_request_that_is_not_for_us_or_no_request(broker):
    broker.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert (await call_large(broker)).error_code == ErrorCode.NOT_CONTROLLER
    assert (await call_large(broker, cut=3)).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert broker.parts.limits.client_requests.unanswered_objects == 0
