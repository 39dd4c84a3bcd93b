"""The offsets at which a batch query starts and ends, and where a stream starts; `limits.py` says how far a micro-batch goes.

Always true: each selected partition gets one offset, under the id its topic has now. What the options name and the cluster does
not have is refused here; what the log no longer has is judged later (data_loss.py), since that may be tolerated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from strandline.ids import TopicPartition, Uuid
from strandline.spark.checkpointed_offsets import StreamOffsets
from strandline.spark.errors import OptionError, TopicError, shown
from strandline.spark.options import values
from strandline.spark.options.bound import (
    AtGroup,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Bound,
    Earliest,
    Latest,
    option_names,
)
from strandline.spark.options.read import ReadOptions
from strandline.spark.options.selection import Assign, Selection, SubscribePattern


class ObservedTopic(NamedTuple):
    topic_id: Uuid
    """ZERO_UUID from brokers that do not send ids."""
    partitions: frozenset[int]


Topics = Mapping[str, ObservedTopic]


class ObservedCluster(Protocol):
    """What the driver asks of the cluster. Answers leave out partitions that do not exist (any more)."""

    def topics(self, names: Iterable[str] | None) -> Topics:
        """Those of these names that exist; None: all but internal ones."""

    def earliest(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Log start offsets."""

    def latest(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """High watermarks; with isolation.level=read_committed, last stable offsets."""

    def by_timestamp(self, timestamps_ms: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
        """The first offset of this time or later; None if there is none."""

    def group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """What the group has committed; without those it has not."""

    def sizes_bytes(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Of the leaders' logs; without those that are not known."""

    def log_append_time(self, topics: Iterable[str]) -> frozenset[str]:
        """Those of these topics with message.timestamp.type=LogAppendTime."""


def partitions_of(topics: Topics) -> list[TopicPartition]:
    return sorted((name, partition) for name, topic in topics.items() for partition in topic.partitions)


def topic_ids(topics: Topics) -> dict[str, Uuid]:
    return {name: topic.topic_id for name, topic in topics.items()}


def selected(selection: Selection, view: ObservedCluster) -> Topics:
    """The selected topics that exist now; nothing is refused, since a vanished topic may be tolerated."""
    match selection:
        case SubscribePattern():
            return {name: topic for name, topic in view.topics(None).items() if selection.matches(name)}
        case Assign(partitions):
            seen = view.topics(selection.topics)
            kept = {
                name: ObservedTopic(topic.topic_id, frozenset(p for p in topic.partitions if (name, p) in partitions))
                for name, topic in seen.items()
            }
            return {name: topic for name, topic in kept.items() if topic.partitions}
    return view.topics(selection.topics)


def required(selection: Selection, view: ObservedCluster) -> Topics:
    """The same when a query starts: TopicError for a topic or partition that is named and does not exist."""
    topics = selected(selection, view)
    match selection:
        case SubscribePattern(pattern):
            if not topics:
                raise TopicError(
                    f"option 'subscribePattern': no topic matches '{pattern}'; create one, or change the pattern"
                )
        case Assign(partitions):
            missing = partitions - set(partitions_of(topics))
            if missing:
                raise TopicError(f"option 'assign': {shown(list(missing))} not there; create it, or leave it out")
        case _:
            for name in selection.topics:
                if name not in topics:
                    raise TopicError(f"option 'subscribe': there is no topic '{name}'; create it, or leave it out")
    return topics


def initial_offsets(options: ReadOptions, view: ObservedCluster) -> StreamOffsets:
    """Where a new stream starts."""
    topics = required(options.selection, view)
    latest = LogEnds(view, partitions_of(topics))
    return StreamOffsets.of(topic_ids(topics), _resolved(options.start, "starting", options, latest))


def batch_bounds(options: ReadOptions, view: ObservedCluster) -> tuple[StreamOffsets, StreamOffsets]:
    """Where a batch query starts and ends; OptionError if what the options say of a partition starts after its end."""
    assert options.end is not None
    topics = required(options.selection, view)
    # One view of the ends for both bounds, so that a start at latest is never after an end at latest.
    log_ends = LogEnds(view, partitions_of(topics))
    starts = _resolved(options.start, "starting", options, log_ends)
    ends = _resolved(options.end, "ending", options, log_ends)
    for (topic, partition), start in starts.items():
        end = ends[topic, partition]
        # A start after the end of the log itself is lost data or a wrong offset: data_loss.py judges that.
        if start > end and not _is_latest(options.end, (topic, partition)):
            first, last = _name(options.start, "starting"), _name(options.end, "ending")
            raise OptionError(
                f"{topic}-{partition} starts at offset {start} ('{first}'), after its end {end} ('{last}')"
            )
    ids = topic_ids(topics)
    return StreamOffsets.of(ids, starts), StreamOffsets.of(ids, ends)


def carried_on(known: StreamOffsets, topics: Topics, view: ObservedCluster) -> StreamOffsets:
    """Where a stream continues from `known`: partitions and topics that are new, or were created again, start at earliest.

    What is no longer there is left out.
    """
    going_on = {
        (topic, partition): offset
        for (topic, partition), offset in known.offsets.items()
        if topic in topics
        and partition in topics[topic].partitions
        and known.is_same_topic(topic, topics[topic].topic_id)
    }
    new = [partition for partition in partitions_of(topics) if partition not in going_on]
    return StreamOffsets.of(topic_ids(topics), going_on | dict(view.earliest(new) if new else {}))


class LogEnds:
    """The earliest and latest offsets of these partitions, each asked for at most once."""

    def __init__(self, view: ObservedCluster, partitions: list[TopicPartition]) -> None:
        self.view = view
        self.partitions = partitions
        self._ends: dict[str, Mapping[TopicPartition, int]] = {}

    def earliest(self) -> Mapping[TopicPartition, int]:
        return self._complete("earliest")

    def latest(self) -> Mapping[TopicPartition, int]:
        return self._complete("latest")

    def _complete(self, which: str) -> Mapping[TopicPartition, int]:
        if which not in self._ends:
            ask = self.view.earliest if which == "earliest" else self.view.latest
            self._ends[which] = ask(self.partitions)
            missing = set(self.partitions) - self._ends[which].keys()
            if missing:
                raise TopicError(f"{shown(list(missing))} went away while the query was planned; start it again")
        return self._ends[which]


def _resolved(bound: Bound, side: str, options: ReadOptions, log_ends: LogEnds) -> dict[TopicPartition, int]:
    match bound:
        case Earliest():
            return dict(log_ends.earliest())
        case Latest():
            return dict(log_ends.latest())
        case AtOffsets(offsets):
            _same_partitions(_name(bound, side), offsets, log_ends.partitions, " (-2 is earliest, -1 latest)")
            special = {values.EARLIEST: log_ends.earliest, values.LATEST: log_ends.latest}
            return {
                partition: special[offset]()[partition] if offset in special else offset
                for partition, offset in offsets.items()
            }
        case AtGroup(group_id):
            committed = log_ends.view.group_offsets(group_id, log_ends.partitions)
            return {p: committed[p] if p in committed else log_ends.earliest()[p] for p in log_ends.partitions}
        case AtTimestamp(timestamp_ms):
            return _by_timestamp(bound, dict.fromkeys(log_ends.partitions, timestamp_ms), side, options, log_ends)
        case AtTimestamps(timestamps_ms):
            _same_partitions(_name(bound, side), timestamps_ms, log_ends.partitions, "")
            return _by_timestamp(bound, timestamps_ms, side, options, log_ends)


def _by_timestamp(
    bound: Bound, timestamps_ms: Mapping[TopicPartition, int], side: str, options: ReadOptions, log_ends: LogEnds
) -> dict[TopicPartition, int]:
    found = log_ends.view.by_timestamp(timestamps_ms)
    resolved: dict[TopicPartition, int] = {}
    for (topic, partition), timestamp_ms in timestamps_ms.items():
        offset = found.get((topic, partition))
        if offset is None and side == "starting" and options.start_without_match == "error":
            raise OptionError(
                f"option '{_name(bound, side)}': {topic}-{partition} has no record of {timestamp_ms} or later; choose an "
                "earlier time, or set 'startingOffsetsByTimestampStrategy' to latest"
            )
        resolved[topic, partition] = log_ends.latest()[topic, partition] if offset is None else offset
    return resolved


def _same_partitions(name: str, given: Mapping[TopicPartition, int], there: list[TopicPartition], hint: str) -> None:
    missing, extra = set(there) - given.keys(), given.keys() - set(there)
    if missing:
        raise OptionError(f"option '{name}' lacks {shown(list(missing))}; give each partition that is read{hint}")
    if extra:
        raise OptionError(f"option '{name}' has {shown(list(extra))}, which the query does not read; leave it out")


def _is_latest(bound: Bound, partition: TopicPartition) -> bool:
    match bound:
        case Latest():
            return True
        case AtOffsets(offsets):
            return offsets[partition] == values.LATEST
    return False


def _name(bound: Bound, side: str) -> str:
    by_time, by_times, by_offsets = option_names(side)
    return by_time if isinstance(bound, AtTimestamp) else by_times if isinstance(bound, AtTimestamps) else by_offsets
