"""A proposed assignment of partitions to brokers that moves few replicas.

A replica stays unless its broker is not in the list, its rack has more replicas of the partition than another could have, or its
broker has at least two more than another. Then preferred leaders are balanced by reordering replicas only.

Always true: no broker has two replicas of a partition; the replicas of a partition are on as many racks as possible, which takes
precedence over balance; the same input gives the same proposal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from strandline.cli.reassignment.reassignment_plan import Assignment, PlanError
from strandline.ids import TopicPartition

Racks = Mapping[int, str]
"""The rack of each broker; a broker without a rack is a rack of its own."""
Proposal = dict[TopicPartition, list[int]]


def racks_of(brokers: Mapping[int, str | None], *, rack_aware: bool) -> Racks:
    """The racks to spread over; PlanError if only some brokers have one."""
    with_rack = [broker for broker, rack in brokers.items() if rack is not None]
    if rack_aware and with_rack and len(with_rack) < len(brokers):
        raise PlanError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment "
            "without rack information."
        )
    return {broker: rack if rack_aware and rack is not None else f"broker {broker}" for broker, rack in brokers.items()}


def propose(
    current: Assignment, racks: Racks, replication_factor: int | None = None
) -> dict[TopicPartition, list[int]]:
    """Replicas on these brokers for every partition; as many as it has now, or `replication_factor`."""
    most = max((replication_factor or len(replicas) for replicas in current.values()), default=0)
    if most > len(racks):
        raise PlanError(
            f"The target replication factor of {most} cannot be reached because only {len(racks)} broker(s) are registered."
        )
    proposal: Proposal = {key: [r for r in dict.fromkeys(current[key]) if r in racks] for key in sorted(current)}
    counts = _ReplicaCounts(proposal, racks)
    for key, replicas in proposal.items():
        _resize(key, replicas, replication_factor or len(current[key]), racks, counts)
        _spread(key, replicas, racks, counts)
    _even(proposal, counts, lambda replicas, high, low: _may_replace(replicas, high, low, racks), _replace)
    leaders = _ReplicaCounts({key: replicas[:1] for key, replicas in proposal.items()}, racks)
    _even(proposal, leaders, lambda replicas, high, low: replicas[0] == high and low in replicas[1:], _swap)
    return proposal


class _ReplicaCounts:
    """The number of replicas on each broker, for each topic and in total."""

    def __init__(self, held: Mapping[TopicPartition, Sequence[int]], brokers: Iterable[int]) -> None:
        self.brokers = sorted(brokers)
        self.total: Counter[int] = Counter()
        self.by_topic: dict[str, Counter[int]] = {}
        for key, replicas in held.items():
            for replica in replicas:
                self.add(key, replica)

    def add(self, key: TopicPartition, broker: int, count: int = 1) -> None:
        self.total[broker] += count
        self.by_topic.setdefault(key[0], Counter())[broker] += count

    def move(self, key: TopicPartition, high: int, low: int) -> None:
        self.add(key, high, -1)
        self.add(key, low)

    def of(self, topic: str, broker: int) -> tuple[int, int]:
        """The sort key of a broker: balance within a topic comes first."""
        return self.by_topic.get(topic, Counter())[broker], self.total[broker]


def _resize(key: TopicPartition, replicas: list[int], factor: int, racks: Racks, counts: _ReplicaCounts) -> None:
    while len(replicas) > factor:
        crowd = Counter(racks[replica] for replica in replicas)
        # The preferred leader stays.
        leaver = max(replicas[1:], key=lambda r: (crowd[racks[r]], counts.of(key[0], r), replicas.index(r)))
        replicas.remove(leaver)
        counts.add(key, leaver, -1)
    while len(replicas) < factor:
        joiner = _least(key[0], replicas, racks, counts)
        replicas.append(joiner)
        counts.add(key, joiner)


def _least(topic: str, replicas: Sequence[int], racks: Racks, counts: _ReplicaCounts) -> int:
    """The broker for a new replica: on the rack with the fewest of these replicas, and with the fewest in total."""
    crowd = Counter(racks[replica] for replica in replicas)
    return min(
        (broker for broker in racks if broker not in replicas),
        key=lambda broker: (crowd[racks[broker]], counts.of(topic, broker), broker),
    )


def _spread(key: TopicPartition, replicas: list[int], racks: Racks, counts: _ReplicaCounts) -> None:
    """Move replicas off racks that have two more than another rack could have."""
    while True:
        crowd = Counter(racks[replica] for replica in replicas)
        if len(replicas) == len(racks):
            return
        leaver = max(reversed(replicas), key=lambda r: (crowd[racks[r]], counts.of(key[0], r)))
        joiner = _least(key[0], replicas, racks, counts)
        if crowd[racks[leaver]] - crowd[racks[joiner]] < 2:
            return
        _replace(replicas, leaver, joiner)
        counts.move(key, leaver, joiner)


def _may_replace(replicas: Sequence[int], high: int, low: int, racks: Racks) -> bool:
    """Whether `low` may replace `high` without using fewer racks."""
    if high not in replicas or low in replicas:
        return False
    crowd = Counter(racks[replica] for replica in replicas)
    return racks[high] == racks[low] or crowd[racks[low]] < crowd[racks[high]]


def _replace(replicas: list[int], high: int, low: int) -> None:
    replicas[replicas.index(high)] = low


def _swap(replicas: list[int], high: int, low: int) -> None:
    place = replicas.index(low)
    replicas[0], replicas[place] = low, high


def _even(
    proposal: Proposal,
    counts: _ReplicaCounts,
    may: Callable[[Sequence[int], int, int], bool],
    do: Callable[[list[int], int, int], None],
) -> None:
    """Move replicas one by one from a broker with more to one with fewer, while this improves the balance."""
    topics: dict[str, list[TopicPartition]] = {}
    for key in proposal:
        topics.setdefault(key[0], []).append(key)
    moved = True
    while moved:
        moved = False
        for topic, keys in topics.items():
            while (step := _step(topic, keys, proposal, counts, may)) is not None:
                key, high, low = step
                do(proposal[key], high, low)
                counts.move(key, high, low)
                moved = True


def _step(
    topic: str,
    keys: list[TopicPartition],
    proposal: Proposal,
    counts: _ReplicaCounts,
    may: Callable[[Sequence[int], int, int], bool],
) -> tuple[TopicPartition, int, int] | None:
    for high, low in _uneven(topic, counts):
        # The last partitions first: partition 0 of a small topic stays where users expect it.
        for key in reversed(keys):
            if may(proposal[key], high, low):
                return key, high, low
    return None


def _uneven(topic: str, counts: _ReplicaCounts) -> Iterator[tuple[int, int]]:
    """Pairs of brokers with too many and too few replicas, the most uneven pair first."""
    pairs = []
    for high in counts.brokers:
        for low in counts.brokers:
            (high_topic, high_total), (low_topic, low_total) = counts.of(topic, high), counts.of(topic, low)
            within, over_all = high_topic - low_topic, high_total - low_total
            # A difference of one within a topic would only be reversed: worth it only if the total gets more even.
            if within >= 2 or (within == 1 and over_all >= 2):
                pairs.append((-within, -over_all, high, low))
    for _, _, high, low in sorted(pairs):
        yield high, low
