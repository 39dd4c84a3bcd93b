"""DeleteTopics (20), versions 1-6: topics that are to be gone, with all their records.

v3 knows TOPIC_DELETION_DISABLED; v4 is flexible; v5 says why in words; v6 names topics by name or by id, not both.
The answer comes once the deletion is committed; files follow later.
Left out: controller mutation quotas, the timeout (an answer comes once the deletion is committed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.api.changes.decisions import decide_each
from strandline.api.context import RequestContext
from strandline.controller.topics import delete
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID, Uuid
from strandline.metadata.image import MetadataImage, TopicImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

KEY: Final = 20
VERSIONS = range(1, 7)
LISTENERS, FORWARDED = ("broker", "controller"), True


class _Named(NamedTuple):
    """A topic as the request names it."""

    name: str | None
    topic_id: Uuid

    def find(self, image: MetadataImage) -> TopicImage | None:
        return image.topics_by_id.get(self.topic_id) if self.name is None else image.topics.get(self.name)


def handle(request: DeleteTopicsRequest, ctx: RequestContext) -> Awaitable[DeleteTopicsResponse]:
    return _delete(request, ctx)


async def _delete(request: DeleteTopicsRequest, ctx: RequestContext) -> DeleteTopicsResponse:
    if ctx.version >= 6:
        named = [_Named(topic.name, Uuid(topic.topic_id)) for topic in request.topics]
    else:
        named = [_Named(name, ZERO_UUID) for name in request.topic_names]
    counts = Counter(named)
    found: dict[_Named, TopicImage] = {}

    def decide(image: MetadataImage, topic: _Named) -> list[MetadataRecord]:
        _check(topic, counts[topic])
        present = topic.find(image)
        if present is None:
            if topic.name is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        elif {_Named(present.name, ZERO_UUID), _Named(None, present.topic_id)} <= counts.keys():
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic is named twice, by its name and by its id.")
        else:
            found[topic] = present
        return delete(image, present, enabled=True)

    if not ctx.node.config.delete_topic_enable:
        disabled = ErrorCode.TOPIC_DELETION_DISABLED if ctx.version >= 3 else ErrorCode.INVALID_REQUEST
        return _reply([_result(topic, None, KafkaError(disabled, "Topic deletion is disabled.")) for topic in counts])
    outcomes = await decide_each(ctx.node, list(counts), decide)
    return _reply(
        [
            _result(topic, found.get(topic), outcome if isinstance(outcome, KafkaError) else None)
            for topic, outcome in zip(counts, outcomes, strict=True)
        ]
    )


def _check(topic: _Named, count: int) -> None:
    if topic.name is None and topic.topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if topic.name is not None and topic.topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if count > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Duplicate topic id." if topic.name is None else "Duplicate topic name."
        )


def _reply(results: list[DeleteTopicsResponse.DeletableTopicResult]) -> DeleteTopicsResponse:
    return messages.response(KEY)(responses=results)


def _result(
    topic: _Named, found: TopicImage | None, error: KafkaError | None
) -> DeleteTopicsResponse.DeletableTopicResult:
    result = messages.response(KEY).DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
    if error is not None:
        result.error_code, result.error_message = error.code, error.message
    elif found is not None:
        result.name, result.topic_id = found.name, found.topic_id
    return result
