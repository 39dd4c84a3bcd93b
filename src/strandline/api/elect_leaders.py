"""ElectLeaders (43), versions 0-2: make the preferred replicas leaders, or any replica where there is no leader.

v0 elects preferred leaders only; v1 says which election, and has an error for the whole; v2 is flexible.
Without topics it is for all partitions, and those that need no election are left out of the answer.
Left out: the timeout (an answer comes once the elections are committed).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.changes.decisions import check_count
from strandline.api.changes.resources import layers
from strandline.api.context import RequestContext
from strandline.controller.election_policy import policy_of
from strandline.controller.leader_election import Election
from strandline.controller.requested_elections import elect, needs_election
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

KEY: Final = 43
VERSIONS = range(3)
LISTENERS, FORWARDED = ("broker", "controller"), True

ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}

Outcomes = dict[TopicPartition, KafkaError | None]


def handle(request: ElectLeadersRequest, ctx: RequestContext) -> Awaitable[ElectLeadersResponse]:
    return _elect(request, ctx)


async def _elect(request: ElectLeadersRequest, ctx: RequestContext) -> ElectLeadersResponse:
    node = ctx.node
    kind = ELECTIONS.get(request.election_type)
    named = None
    if request.topic_partitions is not None:
        named = list(
            dict.fromkeys((topic.topic, index) for topic in request.topic_partitions for index in topic.partitions)
        )

    def decision(image: MetadataImage) -> Work[tuple[list[MetadataRecord], Outcomes]]:
        if kind is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}.")
        policy = policy_of(image, layers(node, image))
        records: list[MetadataRecord] = []
        outcomes: Outcomes = {}
        for topic, index in _all(image, kind) if named is None else named:
            try:
                records.append(elect(image, topic, index, kind, policy))
                outcomes[topic, index] = None
            except KafkaError as error:
                outcomes[topic, index] = error
            check_count(len(records))
            yield 0
        return records, outcomes

    try:
        check_count(len(named or ()))
        outcomes = await node.controller.decide(decision)
    except KafkaError as error:
        return _answer(dict.fromkeys(named or (), error), error.code)
    return _answer(outcomes, ErrorCode.NONE)


def _all(image: MetadataImage, kind: Election) -> list[TopicPartition]:
    return [
        (topic.name, index)
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if needs_election(partition, kind)
    ]


def _answer(outcomes: Outcomes, code: ErrorCode) -> ElectLeadersResponse:
    response = messages.response(KEY)
    topics: dict[str, list[ElectLeadersResponse.PartitionResult]] = {}
    for (topic, index), error in outcomes.items():
        result = response.PartitionResult(partition_id=index, error_code=0, error_message=None)
        if error is not None:
            result.error_code, result.error_message = error.code, error.message
        topics.setdefault(topic, []).append(result)
    # Version 0 has no place for an error of the whole; there each partition has it.
    return response(
        error_code=code,
        replica_election_results=[
            response.ReplicaElectionResult(topic=topic, partition_result=results) for topic, results in topics.items()
        ],
    )
