"""A client's request on a controller's listener: the answer says that this is a controller, and what the client wanted.

Most clients never get so far: ApiVersions does not list these APIs here, and they give up with a sentence of their own. One that
asks all the same is closed by Kafka without a word; here it is answered MISMATCHED_ENDPOINT_TYPE in the shape of its own API. Where
that version has no place for an error, and for a large request, the connection ends and the log says why.

Always true: nothing is done but to answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.api.context import RequestContext
from strandline.api.requests.error_reply import error_reply, errors_in
from strandline.errors import ErrorCode
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

if TYPE_CHECKING:
    from strandline.api.table import Api

ANSWERED_BYTES_MAX = 64 << 10
"""What is larger is not read for the sake of a refusal."""


def as_refused_on_controller(api: Api) -> Api:
    """An API of brokers, as a controller's listener answers it."""

    def handle(frame: memoryview, ctx: RequestContext, body_position: int) -> bytes:
        reason = (
            f"{api.name} was sent to the listener {ctx.listener} of a controller; it is for brokers: give the client a broker's "
            "address (bootstrap.servers, --bootstrap-server)"
        )
        if len(frame) > ANSWERED_BYTES_MAX:
            raise MalformedRequest(reason)
        request = messages.decode_request(api.key, ctx.version, frame, body_position)
        reply = error_reply(api.key, ctx.version, request, ErrorCode.MISMATCHED_ENDPOINT_TYPE, reason)
        if reply is None or not errors_in(messages.decode_response(api.key, ctx.version, reply)):
            raise MalformedRequest(reason)
        return reply

    return api._replace(handle=handle, raw=True)
