"""Metadata (3), versions 0-13: brokers, topics and who leads their partitions.

v0 asks for all topics with an empty list, v1 with null; v1 adds the controller, v2 the cluster id, v4 says whether topics may
be created, v5 offline replicas, v6 LISTENER_NOT_FOUND, v7 leader epochs, v8 authorized operations, v10 has topic ids, v12
takes them, v13 has an error for the whole.
A topic that does not exist is created if request and `auto.create.topics.enable` allow it. Unlike Kafka, the answer waits for
that and holds the new topic, so the client need not ask again. Where an id and a name are given, the id counts.
A leader with which this broker has just lost touch is not named as such (LEADER_NOT_AVAILABLE): the next one is about to be
elected. A broker that was fenced a moment ago is still named: librdkafka, which learns in one answer that a broker is gone and
that another leads what it led, gets lost for a second.
Left out: creating an internal topic because it was asked for; its coordinator does that.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

from strandline.api.cluster import metadata_updates
from strandline.api.cluster.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from strandline.api.cluster.topic_bytes import encode_topic, join_reply
from strandline.api.cluster.view import ClusterView
from strandline.api.context import RequestContext
from strandline.api.requests import slices
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID, Uuid
from strandline.log.names import topic_name_problem
from strandline.metadata.image import INTERNAL_TOPICS, PartitionImage, TopicImage
from strandline.sliced_work import Work, finished
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.metadata import MetadataRequest, MetadataResponse

KEY: Final = 3
VERSIONS = range(14)

CREATE_TOPICS: Final = 19
CREATED_WITHIN_MS = 5_000

AT_ONCE_MAX = 1_000
"""A request for more topics is answered in slices, and never held back until there is an update."""
CREATED_PER_REQUEST_MAX = 1_000
"""Topics that one Metadata request may bring into being; the rest are unknown until it is sent again."""


def handle(request: MetadataRequest, ctx: RequestContext) -> MaybePending[bytes]:
    if request.topics is None or (ctx.version == 0 and not request.topics):
        ctx.node.connections.metadata_seen.note(ctx)
        return slices.answer(_MetadataReply(request, ctx).all_topics(), request, ctx)
    if ctx.version < 12 and any(topic.name is None or topic.topic_id != ZERO_UUID for topic in request.topics):
        return _refused(request, ctx.version)
    absent = _to_create(request, ctx)
    if absent:
        return _create_and_answer(absent, request, ctx)
    answer, sent = _MetadataReply(request, ctx), ctx.node.connections.metadata_seen
    if len(request.topics) > AT_ONCE_MAX:
        sent.note(ctx)
        return slices.answer(answer.named_topics(), request, ctx)
    body = answer.named_at_once()
    if sent.must_wait(ctx):
        return _answer_after_update(request, ctx, body, suspected=answer.names_a_suspect())
    sent.note(ctx)
    return body


async def _answer_after_update(request: MetadataRequest, ctx: RequestContext, body: bytes, *, suspected: bool) -> bytes:
    newest = await metadata_updates.wait(
        ctx, body, lambda: _MetadataReply(request, ctx).named_at_once(), suspected=suspected
    )
    ctx.node.connections.metadata_seen.note(ctx, waited=True)
    return newest


def _to_create(request: MetadataRequest, ctx: RequestContext) -> list[str]:
    """The names that must be created before the request can be answered, each once."""
    if not (request.allow_auto_topic_creation and ctx.node.config.auto_create_topics_enable):
        return []
    topics = ctx.node.metadata.image().topics
    names = dict.fromkeys(topic.name for topic in request.topics or () if topic.topic_id == ZERO_UUID)
    absent = (
        name
        for name in names
        if name is not None and name not in topics and name not in INTERNAL_TOPICS and topic_name_problem(name) is None
    )
    return list(islice(absent, CREATED_PER_REQUEST_MAX))


async def _create_and_answer(names: list[str], request: MetadataRequest, ctx: RequestContext) -> bytes:
    node = ctx.node
    create = messages.request(CREATE_TOPICS)
    wanted = [create.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1) for name in names]
    invalid = set()
    try:
        async with asyncio.timeout(CREATED_WITHIN_MS / 1000):
            reply = await node.controller.ask(CREATE_TOPICS, create(topics=wanted, timeout_ms=CREATED_WITHIN_MS))
    except (KafkaError, TimeoutError):
        # There is no controller just now: the topics are unknown, and the client asks again.
        pass
    else:
        codes = {topic.name: topic.error_code for topic in reply.topics}
        invalid = {name for name, code in codes.items() if code == ErrorCode.INVALID_TOPIC_EXCEPTION}
        # That it exists by now is no failure here: another client asked for it at the same time.
        made = [name for name, code in codes.items() if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)]
        await node.metadata.until(lambda image: all(name in image.topics for name in made), CREATED_WITHIN_MS / 1000)
    return await slices.in_turns(_MetadataReply(request, ctx, invalid).named_topics(), node.clock.monotonic)


def _refused(request: MetadataRequest, version: int) -> bytes:
    """Topic ids in a version that does not take them: the request makes no sense."""
    response = messages.response(KEY)
    topics = [
        response.MetadataResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id
        )
        for topic in request.topics or ()
    ]
    return messages.encode_response(KEY, version, response(topics=topics, error_code=ErrorCode.INVALID_REQUEST))


class _MetadataReply:
    """The answer to one request, from one image."""

    def __init__(self, request: MetadataRequest, ctx: RequestContext, invalid: set[str] | None = None) -> None:
        self.request = request
        self.ctx = ctx
        self.version = ctx.version
        self.image = ctx.node.metadata.image()
        self.view = ClusterView(self.image.brokers, ctx.listener)
        self.suspects = ctx.node.metadata.suspects()
        self.invalid = invalid or set()
        self.message = messages.response(KEY)
        self.operations = bool(request.include_topic_authorized_operations)

    def all_topics(self) -> Work[bytes]:
        topics = []
        for topic in self.image.topics.values():
            topics.append(self._present(topic))
            yield len(topics[-1])
        return self._reply(topics)

    def named_at_once(self) -> bytes:
        """Of a request for few topics."""
        return finished(self.named_topics())

    def named_topics(self) -> Work[bytes]:
        # A topic that is asked for twice is answered once, as in Kafka. Where an id is given, the name does not count.
        wanted = dict.fromkeys(
            topic.name if topic.topic_id == ZERO_UUID else Uuid(topic.topic_id) for topic in self.request.topics or ()
        )
        topics = []
        for name_or_id in wanted:
            topic = self._find(name_or_id)
            topics.append(self._absent(name_or_id) if topic is None else self._present(topic))
            yield len(topics[-1])
        return self._reply(topics)

    def names_a_suspect(self) -> bool:
        """Whether a partition of the topics that were asked for is led by a broker that may be gone."""
        if not self.suspects:
            return False
        topics = (self._find(topic.name or Uuid(topic.topic_id)) for topic in self.request.topics or ())
        return any(p.leader in self.suspects for topic in topics if topic is not None for p in topic.partitions)

    def _find(self, name_or_id: str | Uuid | None) -> TopicImage | None:
        return None if name_or_id is None else self.image.topic(name_or_id)

    def _reply(self, topics: list[bytes]) -> bytes:
        message = self.message(
            brokers=[
                self.message.MetadataResponseBroker(
                    node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
                )
                for broker, endpoint in self.view.nodes(departed=self.ctx.node.metadata.departed())
            ],
            cluster_id=self.ctx.node.cluster_id,
            # Any broker passes on what is for the controller, so the one that was asked will do.
            controller_id=self.ctx.node.node_id if self.ctx.node.node_id in self.view.alive else -1,
        )
        if 8 <= self.version <= 10 and self.request.include_cluster_authorized_operations:
            message.cluster_authorized_operations = CLUSTER_OPERATIONS
        return join_reply(self.version, message, topics)

    def _absent(self, name_or_id: str | Uuid | None) -> bytes:
        if name_or_id is None:
            topic = self.message.MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=None)
        elif isinstance(name_or_id, bytes):
            topic = self.message.MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=name_or_id
            )
        else:
            invalid = name_or_id in self.invalid or topic_name_problem(name_or_id) is not None
            topic = self.message.MetadataResponseTopic(
                error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                name=name_or_id,
                is_internal=name_or_id in INTERNAL_TOPICS,
            )
        if self.operations:
            topic.topic_authorized_operations = TOPIC_OPERATIONS
        return encode_topic(self.version, topic)

    def _present(self, topic: TopicImage) -> bytes:
        return self.ctx.node.fetches.topic_bytes.of(
            topic, self.image.brokers, self.version, (self.view.listener, self.operations, self.suspects), self._topic
        )

    def _topic(self, topic: TopicImage) -> MetadataResponse.MetadataResponseTopic:
        message = self.message.MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=[self._partition(index, partition) for index, partition in enumerate(topic.partitions)],
        )
        if self.operations:
            message.topic_authorized_operations = TOPIC_OPERATIONS
        return message

    def _partition(self, index: int, partition: PartitionImage) -> MetadataResponse.MetadataResponsePartition:
        view = self.view
        replicas, isr = partition.replicas, partition.isr
        if self.version == 0:
            # v0 names only the replicas that can be reached, and calls it an error if some can't.
            replicas = tuple(broker_id for broker_id in replicas if broker_id in view.alive)
            isr = tuple(broker_id for broker_id in isr if broker_id in view.alive)
        has_leader = partition.leader in view.reachable
        if partition.leader in self.suspects:
            has_leader, error = False, ErrorCode.LEADER_NOT_AVAILABLE
        elif not has_leader:
            error = ErrorCode.LEADER_NOT_AVAILABLE
            if self.version >= 6 and view.is_registered(partition.leader):
                error = ErrorCode.LISTENER_NOT_FOUND
        elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        else:
            error = ErrorCode.NONE
        return self.message.MetadataResponsePartition(
            error_code=error,
            partition_index=index,
            leader_id=partition.leader if has_leader else -1,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=view.offline_replicas(partition),
        )
