"""The uniform assignor: as many partitions for each member as its subscriptions allow, moving as few as it must.

Topics with the same subscribers form a pool. Members keep what they have and still subscribe to; what no member has
goes to the subscriber with the fewest partitions; then partitions go from the fullest owner to the emptiest subscriber
of a pool while that makes the two more alike.

Always true: if all members subscribe alike, they end within one partition of each other, by the fewest moves there are;
otherwise no partition could move to a subscriber who has two less than its owner (as long as BALANCING_PASSES_MAX
suffices).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace

from strandline.groups.assignors.spec import Assignment, GroupSpec
from strandline.groups.assignors.subscribers import subscribers
from strandline.ids import Uuid

BALANCING_PASSES_MAX = 32
"""A move in one pool may make another pool uneven; each pass leaves a fraction of that."""


class UniformAssignor:
    name = "uniform"

    def assign(self, spec: GroupSpec) -> Assignment:
        loads = dict.fromkeys(sorted(spec.members), 0)
        pools = _pools(spec)
        _keep(spec, pools, loads)
        for pool in pools:
            pool.fill(spec, loads)
        for _ in range(BALANCING_PASSES_MAX):
            if not sum([pool.balance(loads) for pool in pools]):
                break
        return _assignment(loads, pools)


@dataclass(slots=True)
class _Pool:
    """The partitions of the topics that the same members subscribe to."""

    members: tuple[str, ...]
    topic_ids: list[Uuid] = field(default_factory=list)
    owned: dict[str, list[tuple[Uuid, int]]] = field(default_factory=dict)
    """By member; what it had before comes first, so that what it was just given is the first to go."""

    def size(self, spec: GroupSpec) -> int:
        return sum(spec.topics[topic_id].partitions for topic_id in self.topic_ids)

    def fill(self, spec: GroupSpec, loads: dict[str, int]) -> None:
        """Give every partition that has no owner to the member with the fewest."""
        taken = {topic_id: bytearray(spec.topics[topic_id].partitions) for topic_id in self.topic_ids}
        for owned in self.owned.values():
            for topic_id, partition in owned:
                taken[topic_id][partition] = True
        emptiest = [(loads[member_id], member_id) for member_id in self.members]
        heapify(emptiest)
        for topic_id, flags in taken.items():
            for partition, is_taken in enumerate(flags):
                if not is_taken:
                    load, member_id = emptiest[0]
                    self.owned.setdefault(member_id, []).append((topic_id, partition))
                    heapreplace(emptiest, (load + 1, member_id))
        for load, member_id in emptiest:
            loads[member_id] = load

    def balance(self, loads: dict[str, int]) -> int:
        """Move partitions from the fullest owners to the emptiest members while they are two apart; how many moved."""
        fullest = [(-loads[member_id], member_id) for member_id, owned in self.owned.items() if owned]
        emptiest = [(loads[member_id], member_id) for member_id in self.members]
        heapify(fullest)
        heapify(emptiest)
        moved = 0
        while fullest:
            giver_load, giver = -fullest[0][0], fullest[0][1]
            if giver_load != loads[giver] or not self.owned[giver]:
                heappop(fullest)
                continue
            taker_load, taker = emptiest[0]
            if taker_load != loads[taker]:
                heappop(emptiest)
                continue
            if giver_load - taker_load < 2:
                break
            self.owned.setdefault(taker, []).append(self.owned[giver].pop())
            moved += 1
            for member_id, load in ((giver, giver_load - 1), (taker, taker_load + 1)):
                loads[member_id] = load
                heappush(fullest, (-load, member_id))
                heappush(emptiest, (load, member_id))
        return moved


def _pools(spec: GroupSpec) -> list[_Pool]:
    """Those with the most partitions for each subscriber first:
    a member that must take many there takes fewer elsewhere.
    """
    pools: dict[tuple[str, ...], _Pool] = {}
    for topic_id, members in subscribers(spec, sorted(spec.members)).items():
        pools.setdefault(members, _Pool(members)).topic_ids.append(topic_id)
    return sorted(
        pools.values(), key=lambda pool: (-pool.size(spec) / len(pool.members), len(pool.members), pool.topic_ids[0])
    )


def _keep(spec: GroupSpec, pools: Sequence[_Pool], loads: dict[str, int]) -> None:
    """Let members have what they had, as far as it exists, they want it, and no member before them had it too."""
    pool_of = {topic_id: pool for pool in pools for topic_id in pool.topic_ids}
    taken: dict[Uuid, set[int]] = {topic_id: set() for topic_id in pool_of}
    for member_id in loads:
        member = spec.members[member_id]
        for topic_id in sorted(member.assigned):
            if topic_id not in pool_of or topic_id not in member.subscribed_topic_ids:
                continue
            count = spec.topics[topic_id].partitions
            kept = [partition for partition in sorted(member.assigned[topic_id] - taken[topic_id]) if partition < count]
            taken[topic_id].update(kept)
            pool_of[topic_id].owned.setdefault(member_id, []).extend((topic_id, partition) for partition in kept)
            loads[member_id] += len(kept)


def _assignment(loads: dict[str, int], pools: Sequence[_Pool]) -> Assignment:
    gathered: dict[str, dict[Uuid, list[int]]] = {member_id: {} for member_id in loads}
    for pool in pools:
        for member_id, owned in pool.owned.items():
            topics = gathered[member_id]
            for topic_id, partition in owned:
                topics.setdefault(topic_id, []).append(partition)
    return {
        member_id: {key: frozenset(found) for key, found in topics.items()} for member_id, topics in gathered.items()
    }
