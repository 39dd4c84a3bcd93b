"""CreateTopics (19), versions 2-7: new topics, with their partitions, replicas and configuration.

v2 says whether it is only to be validated (since v1); v4 takes -1 for the broker's defaults; v5 is flexible and tells what the
topic became: partitions, replication factor, configuration; v7 tells the topic id.
A topic that can't be created is answered with the reason and does not stop the others of its request.
Left out: create.topic.policy.class.name, controller mutation quotas, the timeout (an answer comes once the topic is committed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.decisions import DecisionOutcome, decide_each
from strandline.api.changes.resources import layers, topic_defaults
from strandline.api.context import RequestContext
from strandline.api.requests.slices import in_turns
from strandline.config.describe import describe_topic
from strandline.controller.topics import PARTITIONS_PER_REQUEST_MAX, RequestedTopic, TakenNames, create
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata import records as r
from strandline.metadata.image import MetadataImage
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.create_topics import CreateTopicsRequest, CreateTopicsResponse

KEY: Final = 19
VERSIONS = range(2, 8)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: CreateTopicsRequest, ctx: RequestContext) -> Awaitable[CreateTopicsResponse]:
    return _create(request, ctx)


async def _create(request: CreateTopicsRequest, ctx: RequestContext) -> CreateTopicsResponse:
    node, response = ctx.node, messages.response(KEY)
    named = Counter(topic.name for topic in request.topics)
    refused: dict[str, KafkaError] = {}
    for name, count in named.items():
        if count > 1:
            refused[name] = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    wanted = [topic for topic in request.topics if topic.name not in refused]
    if sum(_partition_count(topic, ctx) for topic in wanted) > PARTITIONS_PER_REQUEST_MAX:
        too_many = KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        return response(topics=[_refusal(name, refused.get(name, too_many)) for name in named])

    taken: list[TakenNames] = []

    def decide(image: MetadataImage, topic: CreateTopicsRequest.CreatableTopic) -> list[r.MetadataRecord]:
        if topic is wanted[0]:  # the decision may be made more than once
            taken[:] = [TakenNames(image)]
        return create(image, _new_topic(topic), topic_defaults(node, image), node.randomness, taken[0])

    outcomes = await decide_each(node, wanted, decide, validate_only=request.validate_only)

    def answers() -> Work[list[CreateTopicsResponse.CreatableTopicResult]]:
        found = []
        plain = _configs({}, ctx)
        for topic, outcome in zip(wanted, outcomes, strict=True):
            found.append(_answer(topic, outcome, plain, ctx))
            yield 0
        return found

    answered = await in_turns(answers(), node.clock.monotonic)
    return response(topics=[*answered, *(_refusal(name, error) for name, error in refused.items())])


def _partition_count(topic: CreateTopicsRequest.CreatableTopic, ctx: RequestContext) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return ctx.node.config.num_partitions if topic.num_partitions == -1 else max(0, topic.num_partitions)


def _new_topic(topic: CreateTopicsRequest.CreatableTopic) -> RequestedTopic:
    assignments = {assigned.partition_index: assigned.broker_ids for assigned in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Found multiple manual partition assignments for one partition."
        )
    configs = {config.name: config.value for config in topic.configs}
    return RequestedTopic(topic.name, topic.num_partitions, topic.replication_factor, assignments, configs)


def _refusal(name: str, error: KafkaError) -> CreateTopicsResponse.CreatableTopicResult:
    # A null list of configs is for a reader who may not see them; one of a topic that is not there is empty.
    return messages.response(KEY).CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _answer(
    topic: CreateTopicsRequest.CreatableTopic,
    outcome: DecisionOutcome,
    plain: list[CreateTopicsResponse.CreatableTopicConfigs],
    ctx: RequestContext,
) -> CreateTopicsResponse.CreatableTopicResult:
    """`plain` is the configuration of a topic that was given none, which most have."""
    if isinstance(outcome, KafkaError):
        return _refusal(topic.name, outcome)
    response = messages.response(KEY)
    partitions = [record for record in outcome if isinstance(record, r.PartitionRecord)]
    answer = response.CreatableTopicResult(
        name=topic.name,
        topic_id=partitions[0].topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
    )
    if ctx.version >= 5:
        overrides = {config.name: config.value for config in topic.configs if config.value is not None}
        answer.configs = _configs(overrides, ctx) if overrides else plain
    return answer


def _configs(overrides: dict[str, str], ctx: RequestContext) -> list[CreateTopicsResponse.CreatableTopicConfigs]:
    response = messages.response(KEY)
    return [
        response.CreatableTopicConfigs(
            name=row.name,
            value=row.value,
            read_only=row.read_only,
            config_source=row.source,
            is_sensitive=row.sensitive,
        )
        for row in describe_topic(layers(ctx.node, ctx.node.metadata.image()), overrides)
    ]
