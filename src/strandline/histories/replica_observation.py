"""What the judges see of the replicas: each partition on each node as it last was, what leaders wrote, and what is
committed.

Always true: looking changes nothing and draws no chance; a replica at which nothing has changed is passed over.
`written` has every batch that ever stood in a log, by offset and leader epoch, as it was when it first did. `committed`
is what some replica has had below its high watermark, batch by batch, and is cut only by an unclean election, to what
the replica that was elected has of it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from strandline.histories.batches import LoggedBatch, LogReader
from strandline.histories.compaction.cleaned_batches import is_compacted
from strandline.histories.coverage import COMPACTION, REPLICA
from strandline.histories.exchanges import AskedPosition, BrokerExchange, NamedPartition
from strandline.histories.member import ClusterMember
from strandline.histories.min_isr import min_isr
from strandline.histories.outcome import Problem
from strandline.histories.quorum_observation import QuorumObservation, Violation, overriding
from strandline.histories.transcript import Transcript
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.node.observation.logs import ObservedLog
from strandline.node.observation.node import NodeObservation
from strandline.node.observation.replicas import ObservedReplica, ReplicaMark
from strandline.replica.isr_state import ProposedIsr

Key = tuple[Uuid, int]
"""A partition: its topic's id and its number."""

RECOVERING = 1


class PermittedLoss(enum.Enum):
    """What of the committed records the faults of a history may take."""

    NOTHING = "nothing"
    UNSYNCED = "what is not on a device"
    ANYTHING = "what an unclean election takes"


class ReplicaStatus(NamedTuple):
    """One replica at one instant."""

    life: int
    leader_epoch: int
    leads: bool
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    local_end: int
    isr: tuple[int, ...]
    """As its leader has it; empty if it does not lead. The same with `maximal`."""
    maximal: tuple[int, ...]
    proposed_isr: ProposedIsr | None
    partition_epoch: int
    leader: int
    """As this node's metadata has it."""
    is_online: bool
    fetched_from: int | None

    @property
    def is_pending(self) -> bool:
        return self.proposed_isr is not None


class CommittedBatches:
    """What is committed of one partition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.batches: dict[int, LoggedBatch] = {}
        """By base offset."""
        self.end_offset = 0
        self.era = 0
        """How often some of it was lost, and below in which leader epoch it last was."""
        self.lost_in_epoch = -1

    def cut(self, offset: int, leader_epoch: int) -> None:
        self.batches = {base: batch for base, batch in self.batches.items() if batch.last_offset < offset}
        self.end_offset = min(self.end_offset, offset)
        self.era += 1
        self.lost_in_epoch = leader_epoch


class ReplicaJudge:
    """One property of replicas. It raises Violation; what it does not override it does not care for."""

    def loaded(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ObservedReplica, after: ObservedReplica
    ) -> None:
        """A node has opened a log that it had in an earlier life too; `before` is the replica of that life."""

    def appended(
        self, observed: ReplicaObservation, node_id: int, key: Key, batches: Sequence[LoggedBatch], *, is_growth: bool
    ) -> None:
        """A log holds these; if it is no growth, they were read from the disk anew after a restart or a cut."""

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        """A replica is not as it was. `before` is None the first time in a life of its node."""

    def metadata(
        self,
        observed: ReplicaObservation,
        key: Key,
        before: PartitionImage | None,
        after: PartitionImage,
        image: MetadataImage,
    ) -> None:
        """A newer image is committed, in which this partition is not as it was."""

    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        """A broker has answered a Fetch, a ListOffsets or an OffsetForLeaderEpoch, and is seen as it is now."""

    def finished(self, observed: ReplicaObservation) -> Iterable[str]:
        """All faults are undone and all replicas have caught up: what is not as it should be now."""
        return ()

    def __repr__(self) -> str:
        return type(self).__name__


class _BrokerLife:
    """One life of a broker: its replicas as they were at the last look."""

    __slots__ = ("cleanings", "marks", "node")

    def __init__(self, node: NodeObservation) -> None:
        self.node = node
        self.marks: dict[ObservedReplica, ReplicaMark] = {}
        self.cleanings = 0
        """So many were seen."""


class ReplicaObservation:
    def __init__(
        self,
        observed: QuorumObservation,
        members: Mapping[int, ClusterMember],
        judges: Sequence[ReplicaJudge],
        transcript: Transcript,
    ) -> None:
        self.replicas: dict[tuple[int, Key], ReplicaStatus] = {}
        """As they last were, also on nodes that are down."""
        self.committed: dict[Key, CommittedBatches] = {}
        self.written: dict[Key, dict[tuple[int, int], LoggedBatch]] = {}
        """By base offset and leader epoch."""
        self.may_lose = PermittedLoss.NOTHING
        self.on_loss: Callable[[Key, int], None] = lambda key, offset: None
        """Committed records from this offset on are gone."""
        self.coverage = observed.coverage
        self._partitions: dict[tuple[int, Key], ObservedReplica] = {}
        """Of each node's newest life; a replica that left and came back is another one."""
        self._left: set[tuple[int, Key]] = set()
        """Replicas that were moved away from their nodes: what comes back there begins anew."""
        self._readers: dict[tuple[int, Key], LogReader] = {}
        self._views: dict[int, _BrokerLife] = {}
        self._images: dict[int, tuple[MetadataImage, MetadataImage]] = {}
        """By node: the image that it has applied, and the one before."""
        self._image = MetadataImage()
        self._rotten: set[tuple[int, str]] = set()
        self._members = members
        self._observed = observed
        self._transcript = transcript
        self._judges = list(judges)
        self._loaded = overriding(self._judges, ReplicaJudge, "loaded")
        self._appended = overriding(self._judges, ReplicaJudge, "appended")
        self._changed = overriding(self._judges, ReplicaJudge, "changed")
        self._metadata = overriding(self._judges, ReplicaJudge, "metadata")
        self._answered = overriding(self._judges, ReplicaJudge, "answered")
        observed.on_forget.append(self._forget)
        observed.on_exchange.append(self._see_exchange)

    # Looking

    def look(self, member: ClusterMember) -> None:
        """After a turn of this node."""
        if self._observed.image is not self._image:
            self._see_image(member.id, self._observed.image)
        seen = self._observed.nodes.get(member.id)
        if seen is not None:
            known = self._images.get(member.id)
            if known is None or known[0] is not seen.image:
                self._images[member.id] = (seen.image, seen.image if known is None else known[0])
        node = member.observed
        if node is None:
            return
        view = self._views.get(member.id)
        if view is None or view.node is not node:
            view = self._views[member.id] = _BrokerLife(node)
        if node.cleanings != view.cleanings:
            self._see_cleaned(member, view)
        marks = view.marks
        for replica in node.replicas:
            mark = marks.get(replica)
            if mark is None or not replica.is_as(mark):
                self._look_at(member, replica, view)

    def _see_cleaned(self, member: ClusterMember, view: _BrokerLife) -> None:
        """Logs are not what they were: they are read anew."""
        cleanings = view.node.cleanings
        self.coverage.note(COMPACTION, "cleaning finished", cleanings - view.cleanings)
        view.cleanings = cleanings
        for replica in list(view.marks):
            place = (member.id, (replica.topic_id, replica.index))
            if replica.log.config.compact and not replica.is_gone and self._partitions.get(place) is replica:
                self._readers.pop(place, None)
                self._look_at(member, replica, view)

    def _look_at(self, member: ClusterMember, partition: ObservedReplica, view: _BrokerLife) -> None:
        view.marks[partition] = mark = partition.mark()
        log = partition.log
        after = ReplicaStatus(
            member.life,
            partition.leader_epoch,
            partition.leads,
            mark.high_watermark,
            log.log_start_offset,
            mark.log_end_offset,
            partition.local_end,
            partition.isr,
            mark.maximal_isr,
            mark.proposed_isr,
            partition.partition_epoch,
            mark.metadata.leader,
            not partition.is_offline,
            partition.fetched_from,
        )
        place = (member.id, (partition.topic_id, partition.index))
        before = self.replicas.get(place)
        known = self._partitions.get(place)
        if known is not partition:
            before_life = None if before is None else before.life
            self._partitions[place], before = partition, None
            is_same = known is not None and not known.is_gone and place not in self._left
            self._left.discard(place)
            if known is not None and is_same and before_life != after.life:
                self._notify(
                    self._loaded, member.id, partition, lambda judge: judge.loaded(self, *place, known, partition)
                )
        self.replicas[place] = after
        self._see(member.id, partition, before, after)

    def _see(
        self, node_id: int, partition: ObservedReplica, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        key = (partition.topic_id, partition.index)
        if key not in self.committed:
            self.committed[key] = CommittedBatches(str(partition))
            self.written[key] = {}
        self._narrate(node_id, str(partition), before, after)
        self._read(node_id, key, partition)
        self._notify(self._changed, node_id, partition, lambda judge: judge.changed(self, node_id, key, before, after))

    def _read(self, node_id: int, key: Key, partition: ObservedReplica) -> None:
        reader = self._readers.get((node_id, key))
        is_new = reader is None or reader.log is not partition.log
        if reader is None or is_new:
            reader = self._readers[node_id, key] = LogReader(partition.log)
        count = len(reader.batches)
        is_growth = reader.read() and not is_new
        batches = reader.batches[count if is_growth else 0 :]
        if batches:
            self._notify(
                self._appended,
                node_id,
                partition,
                lambda judge: judge.appended(self, node_id, key, batches, is_growth=is_growth),
            )

    def _see_image(self, node_id: int, image: MetadataImage) -> None:
        before, self._image = self._image, image
        if before.topics is image.topics:
            return
        for topic_id, topic in image.topics_by_id.items():
            known = before.topics_by_id.get(topic_id)
            if known is topic:
                continue
            for index, after in enumerate(topic.partitions):
                was = known.partitions[index] if known is not None and index < len(known.partitions) else None
                if was is after:
                    continue
                self._count(was, after)
                if was is not None and was.replicas != after.replicas:
                    self._left |= {(i, (topic_id, index)) for i in was.replicas if i not in after.replicas}
                for judge in self._metadata:
                    try:
                        judge.metadata(self, (topic_id, index), was, after, image)
                    except Violation as violation:
                        self._observed.fail(judge, node_id, violation, f"{topic.name}-{index}: ")

    def _see_exchange(self, node_id: int, exchange: BrokerExchange) -> None:
        for judge in self._answered:
            try:
                judge.answered(self, node_id, exchange)
            except Violation as violation:
                self._observed.fail(judge, node_id, violation)

    def _notify(
        self,
        judges: Sequence[ReplicaJudge],
        node_id: int,
        partition: ObservedReplica,
        event: Callable[[ReplicaJudge], None],
    ) -> None:
        for judge in judges:
            try:
                event(judge)
            except Violation as violation:
                self._observed.fail(judge, node_id, violation, f"{partition}: ")

    def finish(self) -> list[Problem]:
        """The history is over: what the judges say of its end."""
        now = self._observed.now()
        return [Problem(repr(judge), now, what) for judge in self._judges for what in judge.finished(self)]

    # Losses

    def note_rot(self, node_id: int, partition: str) -> None:
        """A bit in a segment of this partition was flipped: what the node reads from there may differ from what was
        written."""
        self._rotten.add((node_id, partition))

    def lose(self, key: Key, offset: int, leader_epoch: int) -> None:
        """An unclean election has taken what was committed from `offset` on."""
        committed = self.committed[key]
        self._transcript.note("world", f"{committed.name} loses {offset}-{committed.end_offset}")
        committed.cut(offset, leader_epoch)
        self.on_loss(key, offset)

    def _forget(self, node_id: int) -> None:
        """The node loses its disk: what it has there afterwards is not what it had."""
        for place in [place for place in self._partitions if place[0] == node_id]:
            del self._partitions[place]
            self.replicas.pop(place, None)
            self._readers.pop(place, None)
        self._rotten = {place for place in self._rotten if place[0] != node_id}

    # Facts

    @property
    def image(self) -> MetadataImage:
        """The newest that any node has had."""
        return self._observed.image

    @property
    def now(self) -> float:
        return self._observed.now()

    def key(self, place: NamedPartition) -> Key | None:
        """Of a partition as a request names it."""
        name, index = place
        if isinstance(name, bytes):
            return (Uuid(name), index)
        topic = self._observed.image.topics.get(name)
        return None if topic is None else (topic.topic_id, index)

    def lag_time_max_s(self, node_id: int) -> float:
        return self._members[node_id].config.replica_lag_time_max_ms / 1000

    def is_running(self, node_id: int) -> bool:
        """Its process is there, and is not paused."""
        return self._observed.is_running(node_id)

    def state(self, key: Key) -> PartitionImage | None:
        topic = self._observed.image.topics_by_id.get(key[0])
        return None if topic is None or len(topic.partitions) <= key[1] else topic.partitions[key[1]]

    def committed_end(self, topic: str, partition: int) -> int:
        known = self._observed.image.topics.get(topic)
        committed = None if known is None else self.committed.get((known.topic_id, partition))
        return 0 if committed is None else committed.end_offset

    def is_current(self, node_id: int) -> bool:
        """The node runs as the incarnation that the controller knows, and is not fenced."""
        member = self._members[node_id]
        broker = self._observed.image.brokers.get(node_id)
        return (
            member.is_up
            and broker is not None
            and not broker.fenced
            and member.observed is not None
            and member.observed.broker_epoch == broker.epoch
        )

    def knows_incarnation(self, node_id: int, broker_id: int, broker_epoch: int) -> bool:
        """The node has applied the registration under which that broker says this epoch: no other counts (SEC-T7)."""
        images = self._images.get(node_id)
        broker = (self._observed.image if images is None else images[0]).brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    def is_rotten(self, node_id: int, key: Key) -> bool:
        if not self._rotten:
            return False
        topic = self._observed.image.topics_by_id.get(key[0])
        return topic is not None and (node_id, f"{topic.name}-{key[1]}") in self._rotten

    def is_compacted(self, key: Key) -> bool:
        topic = self._observed.image.topics_by_id.get(key[0])
        return topic is not None and is_compacted(self._observed.image, topic.name)

    def is_settled(self, node_id: int) -> bool:
        """It hosts all that belongs to it, and is not about to stop."""
        node = self._members[node_id].observed
        return node is not None and node.is_settled

    @property
    def disturbed_at(self) -> float:
        """When a fault was last injected or undone."""
        return self._observed.disturbed_at

    def asked(self, node_id: int, follower_id: int, key: Key) -> AskedPosition | None:
        """What a follower has asked for last of a partition."""
        return self._observed.fetches.last.get((node_id, follower_id), {}).get((bytes(key[0]), key[1]))

    def has_asked(self, node_id: int, follower_id: int, place: NamedPartition, leader_epoch: int, offset: int) -> bool:
        """A Fetch of that follower said so once, whatever became of it."""
        return (node_id, follower_id, place, AskedPosition(leader_epoch, offset)) in self._observed.fetches.ever

    def partition(self, node_id: int, key: Key) -> ObservedReplica | None:
        """A replica of a node's newest life."""
        return self._partitions.get((node_id, key))

    def min_isr(self, node_id: int, key: Key) -> int | None:
        """How many in sync are enough, as the node may know it: it may not have applied the newest image yet."""
        found = []
        for image in (self._observed.image, *self._images.get(node_id, ())):
            topic = image.topics_by_id.get(key[0])
            if topic is not None and key[1] < len(topic.partitions):
                found.append(min_isr(image, topic.name, topic.partitions[key[1]]))
        return min(found, default=None)

    def log(self, node_id: int, key: Key) -> ObservedLog | None:
        node = self._members[node_id].observed
        replica = None if node is None else node.replica_by_id(*key)
        return None if replica is None else replica.log

    def batches(self, node_id: int, key: Key, offset: int, limit_offset: int) -> Iterator[LoggedBatch]:
        """Those of a replica, as it was last seen, that begin from `offset` on and below the limit."""
        reader = self._readers.get((node_id, key))
        if reader is not None:
            for batch in reader.between(offset, limit_offset):
                if batch.base_offset >= offset:
                    yield batch

    # For the transcript and the coverage

    def _count(self, before: PartitionImage | None, after: PartitionImage) -> None:
        if before is None:
            return
        note = self.coverage.note
        if set(before.isr) - set(after.isr):
            note(REPLICA, "isr shrink")
        if set(after.isr) - set(before.isr):
            note(REPLICA, "isr expand")
        if after.leader_epoch > before.leader_epoch and after.has_leader:
            is_unclean = after.leader_recovery_state == RECOVERING and after.isr == (after.leader,)
            note(REPLICA, "unclean election" if is_unclean else "election")
        if before.replicas != after.replicas:
            note(REPLICA, "reassignment")

    def _narrate(self, node_id: int, name: str, before: ReplicaStatus | None, after: ReplicaStatus) -> None:
        who, note, cover = f"n{node_id}", self._transcript.note, self.coverage.note
        if before is None:
            note(who, f"{name} {after.log_start_offset}-{after.log_end_offset}, watermark {after.high_watermark}")
        elif after.log_end_offset < before.log_end_offset:
            note(who, f"{name} is cut from {before.log_end_offset} to {after.log_end_offset}")
            cover(REPLICA, "truncation")
        if before is None or (before.leads, before.leader_epoch) != (after.leads, after.leader_epoch):
            role = "leads" if after.leads else f"follows {after.leader}"
            note(who, f"{role} {name}, epoch {after.leader_epoch}, log end {after.log_end_offset}")
            if before is not None and not after.leads:
                cover(REPLICA, "became follower")
        if after.leads and (before is None or before.isr != after.isr):
            note(who, f"{name} has the ISR {list(after.isr)}")
        if before is not None and before.is_online and not after.is_online:
            note(who, f"{name} is offline")
            cover(REPLICA, "offline")
