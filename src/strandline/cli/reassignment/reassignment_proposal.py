"""Which brokers should hold which partitions: a proposal that moves little.

Replicas stay where they are unless their broker is not wanted, their rack holds more of the partition than another could, or
their broker holds at least two more than another. The first replicas, who lead, are then evened out by order alone.

Always true: no broker holds a partition twice; the replicas of a partition lie on as many racks as there are, which goes before
evenness; the same question has the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from strandline.cli.reassignment.reassignment_plan import Assignment, PlanError
from strandline.ids import TopicPartition

Racks = Mapping[int, str]
"""By broker; a broker that has no rack is one by itself."""
Proposal = dict[TopicPartition, list[int]]


def racks_of(brokers: Mapping[int, str | None], *, rack_aware: bool) -> Racks:
    """The racks to spread over; PlanError if only some brokers name theirs."""
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
    """Replicas for every partition on these brokers; as many as it has, or `replication_factor`."""
    most = max((replication_factor or len(replicas) for replicas in current.values()), default=0)
    if most > len(racks):
        raise PlanError(
            f"The target replication factor of {most} cannot be reached because only {len(racks)} broker(s) are registered."
        )
    proposal: Proposal = {key: [r for r in dict.fromkeys(current[key]) if r in racks] for key in sorted(current)}
    loads = _Loads(proposal, racks)
    for key, replicas in proposal.items():
        _resize(key, replicas, replication_factor or len(current[key]), racks, loads)
        _spread(key, replicas, racks, loads)
    _even(proposal, loads, lambda replicas, high, low: _may_replace(replicas, high, low, racks), _replace)
    leaders = _Loads({key: replicas[:1] for key, replicas in proposal.items()}, racks)
    _even(proposal, leaders, lambda replicas, high, low: replicas[0] == high and low in replicas[1:], _swap)
    return proposal


class _Loads:
    """How many of these replicas each broker holds, of each topic and in all."""

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
        """Evenness within a topic comes first."""
        return self.by_topic.get(topic, Counter())[broker], self.total[broker]


def _resize(key: TopicPartition, replicas: list[int], factor: int, racks: Racks, loads: _Loads) -> None:
    while len(replicas) > factor:
        crowd = Counter(racks[replica] for replica in replicas)
        # The one that leads stays.
        leaver = max(replicas[1:], key=lambda r: (crowd[racks[r]], loads.of(key[0], r), replicas.index(r)))
        replicas.remove(leaver)
        loads.add(key, leaver, -1)
    while len(replicas) < factor:
        joiner = _least(key[0], replicas, racks, loads)
        replicas.append(joiner)
        loads.add(key, joiner)


def _least(topic: str, replicas: Sequence[int], racks: Racks, loads: _Loads) -> int:
    """The broker, not of these, on the rack with the fewest of them, and with the least to hold."""
    crowd = Counter(racks[replica] for replica in replicas)
    return min(
        (broker for broker in racks if broker not in replicas),
        key=lambda broker: (crowd[racks[broker]], loads.of(topic, broker), broker),
    )


def _spread(key: TopicPartition, replicas: list[int], racks: Racks, loads: _Loads) -> None:
    """Take replicas off racks that hold two more than another rack could."""
    while True:
        crowd = Counter(racks[replica] for replica in replicas)
        if len(replicas) == len(racks):
            return
        leaver = max(reversed(replicas), key=lambda r: (crowd[racks[r]], loads.of(key[0], r)))
        joiner = _least(key[0], replicas, racks, loads)
        if crowd[racks[leaver]] - crowd[racks[joiner]] < 2:
            return
        _replace(replicas, leaver, joiner)
        loads.move(key, leaver, joiner)


def _may_replace(replicas: Sequence[int], high: int, low: int, racks: Racks) -> bool:
    """Whether `low` may hold it in place of `high`, with the racks as spread as before."""
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
    loads: _Loads,
    may: Callable[[Sequence[int], int, int], bool],
    do: Callable[[list[int], int, int], None],
) -> None:
    """Step by step from a broker with more to one with less, as long as it makes topics or the whole more even."""
    topics: dict[str, list[TopicPartition]] = {}
    for key in proposal:
        topics.setdefault(key[0], []).append(key)
    moved = True
    while moved:
        moved = False
        for topic, keys in topics.items():
            while (step := _step(topic, keys, proposal, loads, may)) is not None:
                key, high, low = step
                do(proposal[key], high, low)
                loads.move(key, high, low)
                moved = True


def _step(
    topic: str,
    keys: list[TopicPartition],
    proposal: Proposal,
    loads: _Loads,
    may: Callable[[Sequence[int], int, int], bool],
) -> tuple[TopicPartition, int, int] | None:
    for high, low in _uneven(topic, loads):
        # The last partitions first: the early ones of small topics stay where people expect them.
        for key in reversed(keys):
            if may(proposal[key], high, low):
                return key, high, low
    return None


def _uneven(topic: str, loads: _Loads) -> Iterator[tuple[int, int]]:
    """Pairs of which the first should give to the second, the most uneven first."""
    pairs = []
    for high in loads.brokers:
        for low in loads.brokers:
            (high_topic, high_total), (low_topic, low_total) = loads.of(topic, high), loads.of(topic, low)
            within, over_all = high_topic - low_topic, high_total - low_total
            # A topic one apart stays one apart the other way round: worth it only if the whole gets more even.
            if within >= 2 or (within == 1 and over_all >= 2):
                pairs.append((-within, -over_all, high, low))
    for _, _, high, low in sorted(pairs):
        yield high, low
