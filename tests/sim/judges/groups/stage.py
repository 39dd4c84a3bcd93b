"""A stage for judges of groups: brokers that coordinate in given epochs, and members with given requests
and answers."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

from strandline.client.core.group.subscription import encode_assignment
from strandline.groups.dependencies import GroupDependencies
from strandline.groups.shard import GroupShard
from strandline.histories.exchanges import (
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
    CoordinatorExchange,
)
from strandline.histories.groups.observation import GroupJudge, GroupObservation
from strandline.histories.groups.plan import CLASSIC, RANGE, GroupPlan
from strandline.histories.replica_observation import ReplicaJudge
from strandline.histories.transcript import Transcript
from strandline.ids import ZERO_UUID
from strandline.wire import messages

from ..replication.stage import Stage, broken

__all__ = ["GroupStage", "broken", "stage"]

PLAN = GroupPlan("g", CLASSIC, RANGE, 2, False, False, 2, 6_000, 0, 1)
T = "t"


class GroupStage:
    """Broker 1 coordinates group `g` in epoch 1, of topic `t` with one partition. Each event is a second later."""

    def __init__(self, judge: GroupJudge) -> None:
        self.replicas = Stage(ReplicaJudge())
        self.transcript = Transcript(lambda: self.replicas.now)
        self.observed = GroupObservation(PLAN, self.replicas._quorum, self.replicas.observed, [judge], self.transcript)
        self.coordinate(1, 1)

    def coordinate(self, node_id: int, epoch: int) -> None:
        self.observed._epochs[node_id] = epoch

    def _ask(self, api_key: int, request: Any, node_id: int, who: str) -> CoordinatorExchange:
        self.replicas.now += 1
        exchange = CoordinatorExchange(
            node_id, who, api_key, messages.request_family(api_key).versions[-1], self.replicas.now
        )
        exchange.request = request
        self.observed.hear(exchange)
        return exchange

    def _answer(self, exchange: CoordinatorExchange, response: Any) -> None:
        self.replicas.now += 1
        exchange.response, exchange.answered_at = response, self.replicas.now
        self.observed.hear(exchange)

    # Offsets

    def ask_commit(self, offset: int, *, who: str = "a", generation: int = 1, node_id: int = 1) -> CoordinatorExchange:
        Commit = messages.request(OFFSET_COMMIT)
        partition = Commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = Commit.OffsetCommitRequestTopic(name=T, partitions=[partition])
        request = Commit(group_id="g", generation_id_or_member_epoch=generation, member_id=who, topics=[topic])
        return self._ask(OFFSET_COMMIT, request, node_id, who)

    def answer_commit(self, exchange: CoordinatorExchange, code: int = 0) -> None:
        Response = messages.response(OFFSET_COMMIT)
        partition = Response.OffsetCommitResponsePartition(partition_index=0, error_code=code)
        topic = Response.OffsetCommitResponseTopic(name=T, partitions=[partition])
        self._answer(exchange, Response(topics=[topic]))

    def commit(self, offset: int, *, who: str = "a", generation: int = 1, node_id: int = 1, code: int = 0) -> None:
        self.answer_commit(self.ask_commit(offset, who=who, generation=generation, node_id=node_id), code)

    def ask_fetch(self, *, node_id: int = 1) -> CoordinatorExchange:
        Fetch = messages.request(OFFSET_FETCH)
        return self._ask(OFFSET_FETCH, Fetch(groups=[Fetch.OffsetFetchRequestGroup(group_id="g")]), node_id, "auditor")

    def answer_fetch(self, exchange: CoordinatorExchange, offset: int) -> None:
        Response = messages.response(OFFSET_FETCH)
        partition = Response.OffsetFetchResponsePartitions(partition_index=0, committed_offset=offset)
        topic = Response.OffsetFetchResponseTopics(name=T, partitions=[partition])
        self._answer(exchange, Response(groups=[Response.OffsetFetchResponseGroup(group_id="g", topics=[topic])]))

    def fetch(self, offset: int, *, node_id: int = 1) -> None:
        self.answer_fetch(self.ask_fetch(node_id=node_id), offset)

    def delete(self, code: int = 0) -> None:
        exchange = self._ask(DELETE_GROUPS, messages.request(DELETE_GROUPS)(groups_names=["g"]), 1, "operator")
        Response = messages.response(DELETE_GROUPS)
        self._answer(exchange, Response(results=[Response.DeletableGroupResult(group_id="g", error_code=code)]))

    # Members

    def sync(self, who: str, generation: int, *partitions: int, node_id: int = 1, instance: str | None = None) -> None:
        """A member of the classic protocol gets its assignment."""
        request = messages.request(SYNC_GROUP)(
            group_id="g", generation_id=generation, member_id=who, group_instance_id=instance
        )
        assignment = encode_assignment((T, partition) for partition in partitions)
        self._answer(self._ask(SYNC_GROUP, request, node_id, who), messages.response(SYNC_GROUP)(assignment=assignment))

    def heartbeat(
        self, who: str, epoch: int, partitions: Iterable[int] | None = None, instance: str | None = None
    ) -> None:
        """A member of the consumer protocol gets its epoch, and its assignment if that is another."""
        request = messages.request(CONSUMER_GROUP_HEARTBEAT)(group_id="g", member_id=who, instance_id=instance)
        Response = messages.response(CONSUMER_GROUP_HEARTBEAT)
        assignment = None
        if partitions is not None:
            topic = Response.TopicPartitions(topic_id=ZERO_UUID, partitions=list(partitions))
            assignment = Response.Assignment(topic_partitions=[topic])
        response = Response(member_id=who, member_epoch=epoch, assignment=assignment)
        self._answer(self._ask(CONSUMER_GROUP_HEARTBEAT, request, 1, who), response)

    def shard(self, **groups: Any) -> None:
        """What broker 1 has in memory."""
        shard = GroupShard(0, cast(GroupDependencies, SimpleNamespace()))
        shard.groups.update(groups)
        for judge in self.observed._shard_changed:
            self.observed._judge(judge, 1, lambda judge: judge.shard_changed(self.observed, 1, shard))


def stage(judge: type[GroupJudge]) -> GroupStage:
    return GroupStage(judge())
