"""The one partition of the metadata log, as the requests of the quorum name it.

What Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot and the voter APIs have in common: they belong to a cluster,
they speak of partition 0 of `__cluster_metadata` and of nothing else, and their answers say where the leader is.

Always true: what reaches the quorum was checked here first; a list that came over the wire is never indexed unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import PendingReply
from strandline.errors import ErrorCode, error_code
from strandline.ids import ZERO_UUID, Uuid
from strandline.log.names import CLUSTER_METADATA_TOPIC
from strandline.raft.messages import NO_NODE, Address, Endpoints, QuorumEpochResponse, ReplicaKey, Request, Response
from strandline.wire.errors import MalformedRequest

if TYPE_CHECKING:
    from strandline.wire.stubs.begin_quorum_epoch import BeginQuorumEpochResponse
    from strandline.wire.stubs.end_quorum_epoch import EndQuorumEpochResponse

TOPIC, PARTITION = CLUSTER_METADATA_TOPIC, 0
TOPIC_ID = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")


P = TypeVar("P")
R = TypeVar("R")
EpochResponse = TypeVar("EpochResponse", "BeginQuorumEpochResponse", "EndQuorumEpochResponse")


class IndexedPartition(Protocol):
    @property
    def partition_index(self) -> int: ...


IndexedT = TypeVar("IndexedT", bound=IndexedPartition, covariant=True)
AnswerT = TypeVar("AnswerT", bound=Response)


class NamedTopic(Protocol[IndexedT]):
    @property
    def topic_name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[IndexedT]: ...


class NamedTopics(Protocol[IndexedT]):
    """A message that names topics and their partitions."""

    @property
    def topics(self) -> Sequence[NamedTopic[IndexedT]]: ...


class ListenerStruct(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class NodeStruct(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


def is_other_cluster(cluster_id: str | None, ctx: RequestContext) -> bool:
    """Whether the sender means another cluster; one that does not say is believed to mean this one."""
    return cluster_id is not None and cluster_id != ctx.node.cluster_id


def partitions_by_topic(message: NamedTopics[IndexedT]) -> list[tuple[str, list[tuple[int, IndexedT]]]]:
    """What Vote, BeginQuorumEpoch and EndQuorumEpoch, and their answers, speak of."""
    return [(topic.topic_name, [(p.partition_index, p) for p in topic.partitions]) for topic in message.topics]


def only_partition(topics: Iterable[tuple[str | bytes, Iterable[tuple[int, P]]]]) -> P | None:
    """What is said of the metadata partition, if that is the one thing that is spoken of; None otherwise."""
    said = [(topic, index, partition) for topic, partitions in topics for index, partition in partitions]
    if len(said) != 1 or said[0][1] != PARTITION or said[0][0] not in (TOPIC, TOPIC_ID):
        return None
    return said[0][2]


def ask(request: Request, ctx: RequestContext, write: Callable[[AnswerT], R]) -> PendingReply[R]:
    """The quorum's answer, written by `write`; if the connection goes first, the quorum gives it up."""
    member = ctx.node.controller.quorum
    later: PendingReply[R] = PendingReply(may_be_overtaken=False)

    def answer(response: Response) -> None:
        if not later.done:
            later.complete(write(response))  # type: ignore[arg-type]  # the kind that belongs to the request

    later.on_cancel = lambda: member.cancel(answer)
    member.submit(request, answer)
    return later


# Endpoints


def endpoints(listeners: Iterable[ListenerStruct]) -> Endpoints:
    return {listener.name: Address(listener.host, listener.port) for listener in listeners}


def listeners(struct: Callable[..., R], known: Endpoints) -> list[R]:
    return [struct(name=name, host=address.host, port=address.port) for name, address in known.items()]


def node_endpoints(struct: Callable[..., R], leader_id: int, address: Address | None) -> list[R]:
    """Where the leader is, for an answer."""
    if leader_id == NO_NODE or address is None:
        return []
    return [struct(node_id=leader_id, host=address.host, port=address.port)]


def address_of(nodes: Iterable[NodeStruct], leader_id: int) -> Address | None:
    """Where the leader is, from an answer."""
    return next((Address(node.host, node.port) for node in nodes if node.node_id == leader_id), None)


def replica_key(replica_id: int, directory_id: bytes | None) -> ReplicaKey:
    return ReplicaKey(replica_id, Uuid(directory_id) if directory_id else ZERO_UUID)


def addressee(voter_id: int, directory_id: bytes | None, ctx: RequestContext) -> ReplicaKey:
    """The voter that a request is for. Version 0 does not say: the voter that it reached."""
    return replica_key(ctx.node.node_id if voter_id < 0 else voter_id, directory_id)


# Reading an answer


class RefusedByPeer(MalformedRequest):
    """An answer that is an error as a whole and says nothing of the quorum, or that is none at all."""


def answered_partition(code: int, topics: Iterable[tuple[str | bytes, Iterable[tuple[int, P]]]]) -> P:
    """What an answer says of the metadata partition."""
    if code != ErrorCode.NONE:
        raise RefusedByPeer(f"refused with error {code}")
    partition = only_partition(topics)
    if partition is None:
        raise RefusedByPeer("the answer is not about the metadata partition")
    return partition


# BeginQuorumEpoch and EndQuorumEpoch are answered alike


def write_epoch_response(struct: type[EpochResponse], answer: QuorumEpochResponse) -> EpochResponse:
    partition = struct.PartitionData(
        partition_index=PARTITION, error_code=answer.error, leader_id=answer.leader_id, leader_epoch=answer.epoch
    )
    return struct(
        topics=[struct.TopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=node_endpoints(struct.NodeEndpoint, answer.leader_id, answer.leader_address),
    )


def read_epoch_response(response: EpochResponse) -> QuorumEpochResponse:
    said = answered_partition(response.error_code, partitions_by_topic(response))
    address = address_of(response.node_endpoints, said.leader_id)
    return QuorumEpochResponse(error_code(said.error_code), said.leader_epoch, said.leader_id, address)
