"""Administration of groups: what there is, who is in it, what it committed, and changing that.

Each group is asked of its coordinator, each list of every broker. What may succeed the next time (a coordinator that
moved or is loading) is tried again until the time is over.

Always true: an operation on several groups or partitions answers for each: a value, or the KafkaError that it met.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.client.core.group import commits
from strandline.client.core.group.commits import BY_NAME_MAX, OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
from strandline.client.core.group.member import NO_GENERATION, NO_MEMBER, GroupMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.core.group.subscription import decode_assignment
from strandline.client.errors import UnsupportedApi
from strandline.client.flow.client import FlowClient
from strandline.client.flow.coordinator_link import by_coordinator
from strandline.client.flow.group_descriptions import (
    CLASSIC,
    CONSUMER,
    GroupDescription,
    GroupListing,
    MemberDescription,
)
from strandline.client.flow.io import gather
from strandline.client.flow.retry import check, retrying
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

if TYPE_CHECKING:
    from strandline.wire.stubs.consumer_group_describe import ConsumerGroupDescribeResponse
    from strandline.wire.stubs.describe_groups import DescribeGroupsResponse
    from strandline.wire.stubs.offset_delete import OffsetDeleteRequest

DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
DELETE_GROUPS: Final = 42
CONSUMER_GROUP_DESCRIBE: Final = 69
CONSUMER_PROTOCOL_TYPE = "consumer"
MEMBER_TYPES = {0: True, 1: False}
"""ConsumerGroupDescribe's member_type: whether the member speaks the classic protocol."""

GroupOffsets = dict[TopicPartition, OffsetAndMetadata | KafkaError | None]
"""None where nothing was committed."""
PartitionErrors = dict[TopicPartition, KafkaError | None]
"""None where it was done."""


class GroupAdmin:
    _client: FlowClient

    async def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """All groups, or those in one of these states and of one of these types, whatever the case of the letters."""
        wanted_states, wanted_types = list(states), list(types)
        message = messages.request(LIST_GROUPS)(states_filter=wanted_states, types_filter=wanted_types)

        async def ask(node_id: int) -> list[GroupListing]:
            response = await self._client.request(node_id, LIST_GROUPS, message)
            check(response.error_code, f"groups of node {node_id}")
            return [
                # Brokers spell types in small letters, their tools and clients with a capital one.
                GroupListing(g.group_id, g.protocol_type, g.group_state, g.group_type.capitalize())
                for g in response.groups
            ]

        async def attempt() -> list[GroupListing]:
            # Of now: a broker that went away has no groups, those that took over from it have them.
            await self._client.refresh()
            node_ids = sorted(self._client.cluster.brokers)
            parts = await gather(self._client.io, [ask(node_id) for node_id in node_ids])
            listings = [listing for part in parts for listing in part]
            return sorted({listing.group_id: listing for listing in listings}.values())

        found = await retrying(self._client, attempt)
        # Brokers that are too old to filter ignore what they are asked for.
        return [
            listing
            for listing in found
            if _is_among(listing.state, wanted_states) and _is_among(listing.type, wanted_types)
        ]

    async def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
        """GROUP_ID_NOT_FOUND for one that does not exist."""

        async def ask(broker: BrokerMetadata, asked: list[str]) -> dict[str, GroupDescription | KafkaError]:
            described = await self._describe_consumer_groups(broker, asked)
            classic = [group_id for group_id in asked if group_id not in described]
            return described | (await self._describe_classic_groups(broker, classic) if classic else {})

        return await by_coordinator(self._client, group_ids, ask)

    async def _describe_consumer_groups(
        self, broker: BrokerMetadata, group_ids: list[str]
    ) -> dict[str, GroupDescription | KafkaError]:
        """Without those that are not of the consumer protocol."""
        message = messages.request(CONSUMER_GROUP_DESCRIBE)(group_ids=group_ids)
        try:
            response = await self._client.request(broker.node_id, CONSUMER_GROUP_DESCRIBE, message)
        except UnsupportedApi:
            return {}
        return {
            g.group_id: _answer(g, _consumer_group(g, broker))
            for g in response.groups
            if g.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
        }

    async def _describe_classic_groups(
        self, broker: BrokerMetadata, group_ids: list[str]
    ) -> dict[str, GroupDescription | KafkaError]:
        message = messages.request(DESCRIBE_GROUPS)(groups=group_ids)
        response = await self._client.request(broker.node_id, DESCRIBE_GROUPS, message)
        return {g.group_id: _answer(g, _classic_group(g, broker)) for g in response.groups}

    async def list_group_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], *, require_stable: bool = False
    ) -> dict[str, GroupOffsets | KafkaError]:
        """What each group committed for these partitions, or (None) for all.
        A group that does not exist has committed nothing.
        """
        wanted = {group_id: None if keys is None else list(keys) for group_id, keys in groups.items()}

        async def ask(broker: BrokerMetadata, asked: list[str]) -> dict[str, GroupOffsets | KafkaError]:
            answers: dict[str, GroupOffsets | KafkaError] = {}
            left = asked
            while left:
                # Brokers before version 8 answer for the first of them.
                message = commits.fetch_question(
                    {group_id: wanted[group_id] for group_id in left}, {}, require_stable=require_stable
                )
                response = await self._client.request(broker.node_id, OFFSET_FETCH, message, version_max=BY_NAME_MAX)
                answers |= commits.fetch_answers(response, left[0], {})
                left = [group_id for group_id in left[1:] if group_id not in answers]
            return {group_id: _all_or_retriable(answers[group_id]) for group_id in asked if group_id in answers}

        return await by_coordinator(self._client, wanted, ask)

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Commit in the name of a group that has no members now (else UNKNOWN_MEMBER_ID)."""
        stamp = GroupMetadata(group_id, NO_GENERATION, NO_MEMBER, None)
        message = commits.commit_question(stamp, offsets, {})

        async def ask(broker: BrokerMetadata, _: list[str]) -> dict[str, PartitionErrors | KafkaError]:
            response = await self._client.request(broker.node_id, OFFSET_COMMIT, message, version_max=BY_NAME_MAX)
            codes = commits.commit_answers(response, {})
            return {group_id: _by_partition(codes, f"group '{group_id}'")}

        return await self._of_one(group_id, ask)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """GROUP_SUBSCRIBED_TO_TOPIC for a topic that a member subscribes to."""
        Delete = messages.request(OFFSET_DELETE)
        topics: dict[str, OffsetDeleteRequest.OffsetDeleteRequestTopic] = {}
        for topic, partition in sorted(set(partitions)):
            entry = topics.setdefault(topic, Delete.OffsetDeleteRequestTopic(name=topic, partitions=[]))
            entry.partitions.append(Delete.OffsetDeleteRequestPartition(partition_index=partition))
        message = Delete(group_id=group_id, topics=list(topics.values()))

        async def ask(broker: BrokerMetadata, _: list[str]) -> dict[str, PartitionErrors | KafkaError]:
            response = await self._client.request(broker.node_id, OFFSET_DELETE, message)
            if response.error_code:
                raise _refusal(group_id, response.error_code)
            codes = {
                (topic.name, p.partition_index): error_code(p.error_code)
                for topic in response.topics
                for p in topic.partitions
            }
            return {group_id: _by_partition(codes, f"group '{group_id}'")}

        return await self._of_one(group_id, ask)

    async def delete_groups(self, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
        """NON_EMPTY_GROUP for one that has members; of one whose deletion was answered too late, GROUP_ID_NOT_FOUND."""

        async def ask(broker: BrokerMetadata, asked: list[str]) -> dict[str, KafkaError | None]:
            message = messages.request(DELETE_GROUPS)(groups_names=asked)
            response = await self._client.request(broker.node_id, DELETE_GROUPS, message)
            return {
                r.group_id: None if not r.error_code else _refusal(r.group_id, r.error_code) for r in response.results
            }

        return await by_coordinator(self._client, group_ids, ask)

    async def _of_one(
        self,
        group_id: str,
        ask: Callable[[BrokerMetadata, list[str]], Awaitable[dict[str, PartitionErrors | KafkaError]]],
    ) -> PartitionErrors:
        answer = (await by_coordinator(self._client, [group_id], ask))[group_id]
        if isinstance(answer, KafkaError):
            raise answer
        return answer


def _is_among(word: str, wanted: list[str]) -> bool:
    return not wanted or word.lower() in (each.lower() for each in wanted)


def _answer(
    group: ConsumerGroupDescribeResponse.DescribedGroup | DescribeGroupsResponse.DescribedGroup, value: GroupDescription
) -> GroupDescription | KafkaError:
    if group.error_code == ErrorCode.NONE:
        return value
    if group.error_message:
        return KafkaError(error_code(group.error_code), group.error_message)
    return _refusal(group.group_id, group.error_code)


def _refusal(group_id: str, code: int) -> KafkaError:
    known = error_code(code)
    return KafkaError(known, f"group '{group_id}' {REASONS.get(known, 'was refused')}")


def _all_or_retriable(answer: GroupOffsets | KafkaError) -> GroupOffsets | KafkaError:
    """A partition whose offset is not available now makes its group worth asking again."""
    if isinstance(answer, dict):
        for offset in answer.values():
            if isinstance(offset, KafkaError) and offset.code is ErrorCode.UNSTABLE_OFFSET_COMMIT:
                return offset
    return answer


REASONS = {
    ErrorCode.GROUP_ID_NOT_FOUND: "does not exist",
    ErrorCode.NON_EMPTY_GROUP: "has members",
    ErrorCode.INVALID_GROUP_ID: "can't be a group's name",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "reads this topic",
    ErrorCode.UNKNOWN_MEMBER_ID: "has members, who commit for it",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "can't have an offset in a partition that is not there",
}
"""Why the coordinator did not do it."""


def _by_partition(
    codes: dict[TopicPartition, ErrorCode], what: str
) -> dict[TopicPartition, KafkaError | None] | KafkaError:
    """Codes that say that the coordinator is another are those of the whole group."""
    answers: dict[TopicPartition, KafkaError | None] = {}
    for (topic, partition), code in codes.items():
        reason = REASONS.get(code, "was refused")
        error = None if code is ErrorCode.NONE else KafkaError(code, f"{what} {reason} ({topic}-{partition})")
        if error is not None and error.retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return error
        answers[topic, partition] = error
    return answers


def _consumer_group(
    group: ConsumerGroupDescribeResponse.DescribedGroup, coordinator: BrokerMetadata
) -> GroupDescription:
    members = tuple(
        MemberDescription(
            m.member_id,
            m.instance_id,
            m.client_id,
            m.client_host,
            _partitions(m.assignment),
            m.rack_id,
            m.member_epoch,
            _partitions(m.target_assignment),
            MEMBER_TYPES.get(m.member_type),
            tuple(sorted(m.subscribed_topic_names)),
            m.subscribed_topic_regex or None,
        )
        for m in group.members
    )
    return GroupDescription(
        group.group_id,
        CONSUMER,
        group.group_state,
        CONSUMER_PROTOCOL_TYPE,
        group.assignor_name,
        coordinator,
        members,
        group.group_epoch,
        group.assignment_epoch,
    )


def _partitions(assignment: ConsumerGroupDescribeResponse.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(sorted((t.topic_name, p) for t in assignment.topic_partitions for p in t.partitions))


def _classic_group(group: DescribeGroupsResponse.DescribedGroup, coordinator: BrokerMetadata) -> GroupDescription:
    members = tuple(
        MemberDescription(
            m.member_id, m.group_instance_id, m.client_id, m.client_host, _assigned(group, m.member_assignment)
        )
        for m in group.members
    )
    return GroupDescription(
        group.group_id, CLASSIC, group.group_state, group.protocol_type, group.protocol_data, coordinator, members
    )


def _assigned(group: DescribeGroupsResponse.DescribedGroup, assignment: bytes) -> tuple[TopicPartition, ...]:
    """Nothing, if it is not a consumer's: then the bytes mean something else."""
    if group.protocol_type not in ("", CONSUMER_PROTOCOL_TYPE):
        return ()
    try:
        return tuple(sorted(decode_assignment(assignment)))
    except MalformedRequest:
        return ()
