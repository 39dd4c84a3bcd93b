"""Which transactions a leader has asked the coordinator about, so that a late batch opens none (TXN-V2 to TXN-V5, KIP-890).

    guard = guards.note(producer_id, epoch, first_sequence, bumps_epoch=True, now_ms=now_ms, transactional_id=transactional_id)
    ... the coordinator says yes ...
    guards.check(producer_id, guard, first_sequence)

Always true: a guard is worth one transaction. Any marker and any transactional batch of the producer removes it, so that an answer
which is older than they are allows nothing (TXN-V3). Guards end with the leader epoch, a cut and a restart (TXN-V9). Who claims
another epoch of a producer, or its id under another transactional id, has a guard of its own: nobody has confirmed it yet, and it
changes nothing for the producer. All partitions of a node together have GUARDS_MAX at most.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from strandline.errors import ErrorCode, KafkaError


class VerificationGuard:
    """One question to the coordinator; only this very object is its answer."""

    __slots__ = (
        "bumps_epoch",
        "epoch",
        "is_outlived",
        "lowest_sequence",
        "noted_ms",
        "producer_id",
        "transactional_id",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int,
        transactional_id: str,
        lowest_sequence: int,
        bumps_epoch: bool,
        noted_ms: int,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.transactional_id = transactional_id
        self.lowest_sequence = lowest_sequence
        """The lowest that was seen while the question was open (TXN-V5)."""
        self.bumps_epoch = bumps_epoch
        """Each transaction of this producer has an epoch of its own."""
        self.noted_ms = noted_ms
        self.is_outlived = False
        """The leader epoch in which it was noted is over."""


GUARDS_MAX = 100_000
"""For one more the oldest question is forgotten, whose batch is then refused: strangers may ask for any producer id (SEC-L10)."""

NOT_REQUIRED: Final = VerificationGuard(-1, -1, "", -1, False, 0)
"""Verification is off: the batch is taken without."""


class NodeGuards:
    """Those of all partitions of a node, the oldest first."""

    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: OrderedDict[VerificationGuard, VerificationGuards] = OrderedDict()

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, guard: VerificationGuard, owner: VerificationGuards) -> None:
        if len(self._owners) >= GUARDS_MAX:
            oldest, its_owner = next(iter(self._owners.items()))
            its_owner.remove(oldest)
        self._owners[guard] = owner

    def remove(self, guard: VerificationGuard) -> None:
        del self._owners[guard]


class VerificationGuards:
    """Those of one partition."""

    def __init__(self) -> None:
        self.of_node = NodeGuards()
        """Shared with the other partitions of the node, once it has taken this one in."""
        self._by_producer: dict[int, dict[tuple[int, str], VerificationGuard]] = {}

    def __len__(self) -> int:
        return sum(len(guards) for guards in self._by_producer.values())

    def note(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        *,
        bumps_epoch: bool,
        now_ms: int,
        transactional_id: str = "",
    ) -> VerificationGuard:
        """The guard of a batch about which the coordinator is to be asked."""
        key = epoch, transactional_id
        guard = self._by_producer.get(producer_id, {}).get(key)
        if guard is None:
            guard = VerificationGuard(producer_id, epoch, transactional_id, first_sequence, bumps_epoch, now_ms)
            self.of_node.add(guard, self)
            self._by_producer.setdefault(producer_id, {})[key] = guard
        elif first_sequence < guard.lowest_sequence:
            guard.lowest_sequence = first_sequence
        return guard

    def remove(self, guard: VerificationGuard) -> None:
        """The coordinator has refused its producer, or it has been there for too long; it may be gone already."""
        guards = self._by_producer.get(guard.producer_id, {})
        key = guard.epoch, guard.transactional_id
        if guards.get(key) is guard:
            del guards[key]
            if not guards:
                del self._by_producer[guard.producer_id]
            self.of_node.remove(guard)

    def check(self, producer_id: int, guard: VerificationGuard | None, first_sequence: int) -> None:
        """Refuse a batch that would open a transaction on an answer that is too old, or on none."""
        if guard is NOT_REQUIRED:
            return
        if guard is not None and guard.is_outlived:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, "another leader epoch has begun since the coordinator was asked"
            )
        noted = self._by_producer.get(producer_id, {})
        if guard is None or noted.get((guard.epoch, guard.transactional_id)) is not guard:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"the transaction of producer {producer_id} has ended since its coordinator was asked",
            )
        if 0 <= guard.lowest_sequence < first_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} sent sequence {first_sequence}, but {guard.lowest_sequence} is still missing",
            )

    def began(self, producer_id: int) -> None:
        """A transactional batch was appended."""
        guards = self._by_producer.pop(producer_id, None)
        if guards is not None:
            for guard in guards.values():
                self.of_node.remove(guard)

    def ended(self, producer_id: int, epoch: int) -> None:
        """A marker was appended. Where each transaction has an epoch of its own, the marker of the one before has the epoch of the
        next, and leaves its guard alone (TXN-V4)."""
        for guard in tuple(self._by_producer.get(producer_id, {}).values()):
            if not (guard.bumps_epoch and guard.epoch >= epoch):
                self.remove(guard)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those whose batch never came (TXN-P6)."""
        for guard in [guard for guards in self._by_producer.values() for guard in guards.values()]:
            if now_ms - guard.noted_ms >= expiration_ms:
                self.remove(guard)

    def clear(self) -> None:
        """The leader epoch is over, or the log was cut."""
        for guards in self._by_producer.values():
            for guard in guards.values():
                guard.is_outlived = True
                self.of_node.remove(guard)
        self._by_producer.clear()
