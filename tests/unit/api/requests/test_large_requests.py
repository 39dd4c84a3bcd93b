"""SEC-L2, SEC-L4: how many large requests are worked on, and what those hold that are not answered yet."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace

import pytest

from strandline.api.requests import large_requests, slices
from strandline.api.requests.large_requests import ENVELOPE_BYTES_MAX, LARGE_REQUEST_BYTES_MAX, LARGE_REQUESTS_MAX
from strandline.api.requests.pending_reply import PendingReply
from strandline.api.table import BROKER_APIS, CONTROLLER_APIS
from strandline.sliced_work import STEPS_PER_TURN_MAX
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import ENVELOPE

METADATA = 3


def metadata_frame(topics):
    request = messages.request(METADATA)(topics=topics, allow_auto_topic_creation=False)
    return memoryview(b"head" + messages.encode_request(METADATA, 9, request))


def many_topics(count):
    return [messages.request(METADATA).MetadataRequestTopic(name=f"unknown-{i}") for i in range(count)]


async def test_a_large_request_is_answered_as_a_small_one_is(broker):
    ctx = broker.context(METADATA, 9)
    large = broker.parts.limits.client_requests
    topics = many_topics(5000)
    promised = large.serve(BROKER_APIS[METADATA], metadata_frame(topics), ctx, 4)
    small = large.serve(BROKER_APIS[METADATA], metadata_frame(topics[:3]), ctx, 4)
    reply = messages.decode_response(METADATA, 9, await promised)
    first = messages.decode_response(METADATA, 9, await slices.settled(small))
    assert len(reply.topics) == 5000
    assert reply.topics[:3] == first.topics
    assert (large.unanswered_bytes, large.served_count, large.refused_count) == (0, 1, 0)


async def test_a_large_request_that_can_not_be_read_is_refused(broker):
    frame = metadata_frame(many_topics(5000))
    with pytest.raises(MalformedRequest):
        await broker.parts.limits.client_requests.serve(
            BROKER_APIS[METADATA], frame[:-9], broker.context(METADATA, 9), 4
        )
    assert broker.parts.limits.client_requests.unanswered_bytes == 0


async def test_a_request_may_have_so_many_bytes(broker):
    frame = memoryview(bytes(LARGE_REQUEST_BYTES_MAX + 5))
    with pytest.raises(MalformedRequest, match=f"more than {LARGE_REQUEST_BYTES_MAX}"):
        broker.parts.limits.client_requests.serve(BROKER_APIS[METADATA], frame, broker.context(METADATA, 9), 4)
    assert broker.parts.limits.client_requests.refused_count == 1


async def test_the_largest_request_fits_into_an_envelope(broker):
    """A broker that passed it on lost its connection to the controller, and with it what others had asked."""
    ctx = broker.context(ENVELOPE, 0)
    frame = memoryview(bytes(LARGE_REQUEST_BYTES_MAX + ENVELOPE_BYTES_MAX))
    promised = broker.parts.limits.cluster_requests.serve(CONTROLLER_APIS[ENVELOPE], frame, ctx, 4)
    with pytest.raises(MalformedRequest):
        await promised


async def test_only_so_many_large_requests_wait(broker, monkeypatch):
    frame = metadata_frame(many_topics(5000))
    monkeypatch.setattr(large_requests, "UNANSWERED_BYTES_MAX", 3 * len(frame))
    large, ctx = broker.parts.limits.client_requests, broker.context(METADATA, 9)
    replies = await asyncio.gather(
        *(large.serve(BROKER_APIS[METADATA], frame, ctx, 4) for _ in range(5)), return_exceptions=True
    )
    assert [type(reply) for reply in replies].count(MalformedRequest) == 2
    assert large.unanswered_bytes == 0


async def test_a_wait_for_somebody_else_does_not_stop_the_next_large_request(broker):
    """Members of a group may be waited for, for minutes."""
    forever = BROKER_APIS[METADATA]._replace(handle=lambda request, ctx: asyncio.get_running_loop().create_future())
    frame, ctx = metadata_frame(many_topics(5000)), broker.context(METADATA, 9)
    large = broker.parts.limits.client_requests
    waiting = [asyncio.ensure_future(large.serve(forever, frame, ctx, 4)) for _ in range(2 * LARGE_REQUESTS_MAX)]
    assert await asyncio.wait_for(large.serve(BROKER_APIS[METADATA], frame, ctx, 4), 10)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


# What is not answered yet


def waiting_for(promises, shape):
    """A Metadata API that answers once the test completes the promise that it leaves there."""

    def handle(request, ctx):
        later = PendingReply(may_be_overtaken=False)
        promises.append(later)
        if shape == "later":
            return later
        if shape == "coroutine":
            return slices.settled(later)
        if shape == "coroutine of later":
            return asyncio.sleep(0, later)

        def work():
            for _ in range(2 * STEPS_PER_TURN_MAX):
                yield 0
            return later

        return slices.answer(work(), request, ctx)

    return BROKER_APIS[METADATA]._replace(handle=handle)


async def until(condition):
    while not condition():  # noqa: ASYNC110 - the loop turns meanwhile
        await asyncio.sleep(0)


@pytest.mark.parametrize("shape", ["later", "coroutine", "coroutine of later", "slices"])
@pytest.mark.parametrize("count", [200, 5000])
async def test_what_waits_for_others_counts_until_it_is_answered(broker, shape, count):
    promises, large = [], broker.parts.limits.client_requests
    frame, ctx = metadata_frame(many_topics(count)), broker.context(METADATA, 9)
    tasks = [
        asyncio.ensure_future(slices.settled(large.serve(waiting_for(promises, shape), frame, ctx, 4)))
        for _ in range(5)
    ]
    await asyncio.sleep(0)  # all have begun
    await until(lambda: len(promises) == 5)
    assert large.unanswered_objects >= 5 * count
    assert large.unanswered_bytes == (5 * len(frame) if count == 5000 else 0)
    for promise in promises[:3]:
        promise.complete(b"reply")
    promises[3].fail(ConnectionError("gone"))
    # Which of them was decoded last is a matter of time.
    await until(lambda: sum(task.done() for task in tasks) == 4)
    next(task for task in tasks if not task.done()).cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert done.count(b"reply") == 3
    assert {type(one) for one in done} == {bytes, ConnectionError, asyncio.CancelledError}
    assert (large.unanswered_bytes, large.unanswered_objects) == (0, 0)


@pytest.mark.parametrize("count", [200, 5000])
async def test_nothing_more_is_decoded_while_too_many_objects_wait(broker, monkeypatch, count):
    promises, large = [], broker.parts.limits.client_requests
    frame, ctx = metadata_frame(many_topics(count)), broker.context(METADATA, 9)
    _, objects = messages.count_and_decode_request(METADATA, 9, frame, 4)
    monkeypatch.setattr(large_requests, "UNANSWERED_OBJECTS_MAX", 3 * objects)
    serving = [asyncio.ensure_future(slices.settled(large.serve(waiting_for(promises, "coroutine"), frame, ctx, 4)))]
    while len(serving) < 10:
        await asyncio.sleep(0)
        serving.append(
            asyncio.ensure_future(slices.settled(large.serve(waiting_for(promises, "coroutine"), frame, ctx, 4)))
        )
    await until(lambda: large.unanswered_objects >= large_requests.UNANSWERED_OBJECTS_MAX)
    for _ in range(100):
        await asyncio.sleep(0)
    # Two are below the limit, and all that are decoded at once may be decoded then.
    assert 3 <= len(promises) <= 2 + LARGE_REQUESTS_MAX
    small = large.serve(BROKER_APIS[METADATA], metadata_frame(many_topics(3)), ctx, 4)
    assert not isinstance(small, PendingReply)
    while any(not task.done() for task in serving):
        for promise in [promise for promise in promises if not promise.done]:
            promise.complete(b"reply")
        await asyncio.sleep(0)
    assert [task.result() for task in serving] == [b"reply"] * 10
    assert large.unanswered_objects == 0


async def test_a_request_in_slices_that_waits_holds_neither_a_turn_nor_the_collector(broker):
    """DeleteRecords may wait for a follower that stands still."""
    promises, large = [], broker.parts.limits.client_requests
    frame, ctx = metadata_frame(many_topics(5000)), broker.context(METADATA, 9)
    tasks = [
        asyncio.ensure_future(large.serve(waiting_for(promises, "slices"), frame, ctx, 4))
        for _ in range(LARGE_REQUESTS_MAX)
    ]
    await until(lambda: len(promises) == LARGE_REQUESTS_MAX)
    assert await asyncio.wait_for(large.serve(BROKER_APIS[METADATA], frame, ctx, 4), 10)
    await asyncio.sleep(0)
    assert gc.isenabled()
    for promise in promises:
        promise.complete(b"reply")
    assert await asyncio.gather(*tasks) == [b"reply"] * LARGE_REQUESTS_MAX


async def test_clients_can_not_have_the_brokers_requests_refused(broker, monkeypatch):
    frame = metadata_frame(many_topics(5000))
    monkeypatch.setattr(large_requests, "UNANSWERED_BYTES_MAX", len(frame))
    clients, brokers = (
        replace(broker.context(METADATA, 9), may_act_as_broker=is_broker) for is_broker in (False, True)
    )
    promises = []
    waits = asyncio.ensure_future(clients.large_requests.serve(waiting_for(promises, "coroutine"), frame, clients, 4))
    await until(lambda: promises)
    with pytest.raises(MalformedRequest):
        await clients.large_requests.serve(BROKER_APIS[METADATA], frame, clients, 4)
    assert await brokers.large_requests.serve(BROKER_APIS[METADATA], frame, brokers, 4)
    # What brokers pass on was sent by clients.
    assert replace(brokers, api_key=ENVELOPE).large_requests is clients.large_requests
    promises[0].complete(b"reply")
    assert await waits == b"reply"
