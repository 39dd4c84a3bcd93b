"""How much may be damaged at once without breaking a promise, and what already is.

Who is only down, silent or slow costs nothing: it has what it had. What counts is what is lost: a page cache at a power
loss, a disk, a batch that rotted. The controller can't distinguish a killed process from a dark host (KIP-966): both come back
uncleanly, and count together once one of them has lost anything. Nothing of it is forgiven before the cluster is whole
again.

Always true: as long as every damage was allowed here, nothing that was committed is gone from every replica that may
lead; unless the setting says that it goes past that on purpose, and then only for what it says.
"""

from __future__ import annotations

from strandline.histories.replica_observation import PermittedLoss
from strandline.histories.setting import HistorySetting


class Budget:
    def __init__(self, setting: HistorySetting) -> None:
        self._brokers = frozenset(setting.shape.brokers)
        self._replicas = min(topic.replicas for topic in setting.topics)
        self._min_isr = min(topic.min_isr for topic in setting.topics)
        self._min_isr_cached = min((topic.min_isr for topic in setting.cached), default=None)
        self._goes_past = setting.may_lose is not PermittedLoss.NOTHING
        self._voters_lost_max = (setting.voters - 1) // 2
        self._voters = frozenset(setting.shape.voters)
        self._without_cache: set[int] = set()
        self._without_disk: set[int] = set()
        self._rotten: set[int] = set()
        self._unclean: set[int] = set()
        """Killed, with all that they had."""

    # Each says whether it may happen, and if so counts it

    def take_process(self, node_id: int) -> bool:
        """Any number, but fewer than min ISR once one of them has lost what it had in memory."""
        if node_id not in self._brokers:
            return True
        lost = self._without_cache | (self._without_disk & self._brokers)
        if lost and not self._is_covered(lost | self._unclean | {node_id}):
            return False
        self._unclean.add(node_id)
        return True

    def take_power(self, node_id: int) -> bool:
        """At page-cache durability fewer than min ISR at once; what is synced survives."""
        if node_id not in self._brokers:
            return True
        if not self._is_covered(self._without_cache | self._without_disk | self._unclean | {node_id}):
            return False
        self._without_cache.add(node_id)
        return True

    def _is_covered(self, unclean: set[int]) -> bool:
        if self._without_disk & self._brokers:
            return len(unclean) < self._min_isr
        return self._min_isr_cached is None or self._goes_past or len(unclean) < self._min_isr_cached

    def take_disk(self, node_id: int) -> bool:
        """Fewer than min ISR replicas, since the others may be behind; a minority of the voters."""
        disks = self._without_disk | {node_id}
        if len(disks & self._voters) > self._voters_lost_max:
            return False
        lost = disks | self._without_cache | self._rotten | self._unclean
        if node_id in self._brokers and len(lost & self._brokers) >= self._min_isr:
            return False
        self._without_disk.add(node_id)
        return True

    def let_rot(self, node_id: int) -> bool:
        """What rots is committed and everywhere: fewer than all replicas may have it rotten."""
        if len(self._rotten | self._without_disk | {node_id}) >= self._replicas:
            return False
        self._rotten.add(node_id)
        return True

    @property
    def is_whole(self) -> bool:
        return not (self._without_cache or self._without_disk or self._rotten)

    def made_whole(self) -> None:
        """Every replica has everything again."""
        self._without_cache.clear()
        self._without_disk.clear()
        self._rotten.clear()
        self._unclean.clear()
