"""Envelope (58), version 0: a broker passes a client's request on to the active controller.

The embedded request, header and body, is handled as if the client had sent it here, and the answer goes back whole. If the
answer says anywhere that this node is not the controller, the envelope says NOT_CONTROLLER instead, so that the broker finds
the one that is. Errors of the envelope: INVALID_REQUEST for a client address that is none or an API that is never forwarded,
PRINCIPAL_DESERIALIZATION_FAILURE, and UNSUPPORTED_VERSION for an embedded request that is not served here or can't be read.
Left out: acting as the client's principal; there is no authorization yet.
"""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.error_reply import contains_error, error_reply, errors_in_slices
from strandline.api.requests.forwarding import PRINCIPAL_DATA, PRINCIPAL_VERSION
from strandline.api.requests.large_requests import INLINE_BYTES_MAX
from strandline.api.requests.pending_reply import MaybePending, PendingReply, Reply
from strandline.api.requests.slices import encoded, in_turns, settled
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import RequestHeader, read_request_header, response_header
from strandline.wire.message import Message

if TYPE_CHECKING:
    from strandline.api.table import Api
    from strandline.wire.stubs.envelope import EnvelopeRequest, EnvelopeResponse

KEY: Final = 58
VERSIONS = range(1)
LISTENERS, CLUSTER_ACTION = ("controller",), True

DESCRIBE_QUORUM = 55
NOT_CONTROLLER = defaultdict(lambda: ErrorCode.NOT_CONTROLLER, {DESCRIBE_QUORUM: ErrorCode.NOT_LEADER_OR_FOLLOWER})
"""By which error an API says that this node is not the active controller."""


def handle(request: EnvelopeRequest, ctx: RequestContext) -> MaybePending[EnvelopeResponse]:
    try:
        _check_principal(request.request_principal)
        peer = _address(request.client_host_address)
        header, api = _find(request.request_data)
        inner = replace(
            ctx,
            api_key=header.api_key,
            version=header.api_version,
            client_id=header.client_id,
            peer=peer,
            may_act_as_broker=False,  # the broker passes on what others asked
        )
        if len(request.request_data) > INLINE_BYTES_MAX:
            return _handle_large(header, api, request.request_data, inner)
        embedded = _decode(header, request.request_data)
    except KafkaError as error:
        return _refused(error.code)
    answer = _EnvelopedReply(header, embedded, inner)
    try:
        outcome = api.handle(embedded, inner)
    except Exception as error:
        return answer.failed(error)
    if isinstance(outcome, PendingReply):
        later: PendingReply[EnvelopeResponse] = PendingReply(may_be_overtaken=False, on_cancel=outcome.cancel)
        outcome.deliver_to(lambda reply: later.complete(answer.of(reply)))
        return later
    return answer.awaited(outcome) if isinstance(outcome, Awaitable) else answer.of(outcome)


async def _handle_large(
    header: RequestHeader, api: Api, data: bytes, inner: RequestContext
) -> EnvelopeResponse | bytes:
    """The same in slices."""

    async def handled(embedded: Message, inner: RequestContext) -> bytes:
        answer = _EnvelopedReply(header, embedded, inner)
        try:
            reply: Reply = await settled(api.handle(embedded, inner))
            if isinstance(reply, Message):
                monotonic = inner.node.clock.monotonic
                if NOT_CONTROLLER[header.api_key] in await in_turns(errors_in_slices(reply), monotonic):
                    return _encoded(_refused(ErrorCode.NOT_CONTROLLER))
                reply = await encoded(reply, embedded, inner)
                return _encoded(answer.enveloped(bytes(reply)))  # type: ignore[arg-type]  # it is bytes now
        except Exception as error:
            return _encoded(answer.failed(error))
        return _encoded(answer.of(reply))

    try:
        return await inner.large_requests.serve_embedded(handled, data, header.body_position, inner)
    except MalformedRequest:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)


def _encoded(reply: EnvelopeResponse) -> bytes:
    return messages.encode_response(KEY, VERSIONS[-1], reply)


def _check_principal(data: bytes | None) -> None:
    try:
        if data is None or int.from_bytes(data[:2], "big") != PRINCIPAL_VERSION:
            raise MalformedRequest("no principal, or one of a version that is not known")
        messages.decode_data(PRINCIPAL_DATA, PRINCIPAL_VERSION, data, 2)
    except MalformedRequest as error:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None


def _address(data: bytes) -> str:
    family = {4: socket.AF_INET, 16: socket.AF_INET6}.get(len(data))
    if family is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a client address of {len(data)} bytes")
    return socket.inet_ntop(family, data)


def _find(data: bytes) -> tuple[RequestHeader, Api]:
    # The table lists this file too, so it can only be looked at once it is complete.
    from strandline.api.table import CONTROLLER_APIS

    try:
        header = read_request_header(data)
    except MalformedRequest as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None
    api = CONTROLLER_APIS.get(header.api_key)
    if api is None or not api.forwarded:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"API {header.api_key} is not forwarded")
    if header.api_version not in api.versions:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{api.name} version {header.api_version} is not served")
    return header, api


def _decode(header: RequestHeader, data: bytes) -> Message:
    try:
        message: Message = messages.decode_request(header.api_key, header.api_version, data, header.body_position)
        return message
    except MalformedRequest as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None


def _refused(code: ErrorCode) -> EnvelopeResponse:
    return messages.response(KEY)(error_code=code)


class _EnvelopedReply:
    """What becomes of one embedded request."""

    def __init__(self, header: RequestHeader, request: Message, ctx: RequestContext) -> None:
        self._header = header
        self._request = request
        self._ctx = ctx

    async def awaited(self, outcome: Awaitable[Reply]) -> EnvelopeResponse:
        try:
            reply = await outcome
        except Exception as error:
            return self.failed(error)
        return self.of(reply)

    def of(self, reply: Reply | Exception) -> EnvelopeResponse:
        """The envelope for a handler's reply: a message, its bytes, or the error that took its place. Raises nothing."""
        try:
            if isinstance(reply, Exception):
                raise reply
            return self._wrapped(reply)
        except Exception as error:
            return self.failed(error)

    def _wrapped(self, reply: Reply) -> EnvelopeResponse:
        key, version = self._header.api_key, self._header.api_version
        if isinstance(reply, (bytes, bytearray, list)):
            body = b"".join(reply) if isinstance(reply, list) else bytes(reply)
            message = messages.decode_response(key, version, body)
        else:
            assert reply is not None, "an API that is forwarded has a reply"
            body, message = messages.encode_response(key, version, reply), reply
        if contains_error(message, NOT_CONTROLLER[key]):
            return _refused(ErrorCode.NOT_CONTROLLER)
        return self.enveloped(body)

    def enveloped(self, body: bytes) -> EnvelopeResponse:
        key, version = self._header.api_key, self._header.api_version
        return messages.response(KEY)(response_data=response_header(key, version, self._header.correlation_id) + body)

    def failed(self, error: Exception) -> EnvelopeResponse:
        """The handler raised. The connection carries the requests of many clients, so it must not end with this one's."""
        if not isinstance(error, KafkaError):
            self._ctx.loop.call_exception_handler(
                {"message": f"a forwarded request of API {self._header.api_key} failed", "exception": error}
            )
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if error.code is ErrorCode.NOT_CONTROLLER:
            return _refused(error.code)
        body = error_reply(self._header.api_key, self._header.api_version, self._request, error.code, error.message)
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR) if body is None else self._wrapped(body)
