"""Which transactions a leader has asked the coordinator about, so that a late batch opens none (TXN-V2 to TXN-V5, KIP-890).

    guard = guards.note(producer_id, epoch, first_sequence, bumps_epoch=True)
    ... the coordinator says yes ...
    guards.check(producer_id, guard, first_sequence)

Always true: a guard is worth one transaction. Any marker and any transactional batch of the producer removes it, so that an answer
which is older than they are allows nothing (TXN-V3). Guards end with the leader epoch, a cut and a restart (TXN-V9).
"""

from __future__ import annotations

from typing import Final

from strandline.errors import ErrorCode, KafkaError


class VerificationGuard:
    """One question to the coordinator; only this very object is its answer."""

    __slots__ = ("bumps_epoch", "epoch", "is_outlived", "lowest_sequence", "noted_ms")

    def __init__(self, epoch: int, lowest_sequence: int, bumps_epoch: bool, noted_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        """The lowest that was seen while the question was open (TXN-V5)."""
        self.bumps_epoch = bumps_epoch
        """Each transaction of this producer has an epoch of its own."""
        self.noted_ms = noted_ms
        self.is_outlived = False
        """The leader epoch in which it was noted is over."""


GUARDS_MAX = 100_000
"""For one more the oldest question is forgotten, whose batch is then refused: strangers may ask for any producer id (SEC-L10)."""

NOT_REQUIRED: Final = VerificationGuard(-1, -1, False, 0)
"""Verification is off: the batch is taken without."""


class VerificationGuards:
    def __init__(self) -> None:
        self._by_producer: dict[int, VerificationGuard] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def note(
        self, producer_id: int, epoch: int, first_sequence: int, *, bumps_epoch: bool, now_ms: int
    ) -> VerificationGuard:
        """The guard of a batch about which the coordinator is to be asked; of a newer epoch, another one."""
        found = self._by_producer.get(producer_id)
        if found is None or epoch > found.epoch:
            if found is None and len(self._by_producer) >= GUARDS_MAX:
                del self._by_producer[next(iter(self._by_producer))]
            found = self._by_producer[producer_id] = VerificationGuard(epoch, first_sequence, bumps_epoch, now_ms)
        elif epoch == found.epoch and first_sequence < found.lowest_sequence:
            found.lowest_sequence = first_sequence
        return found

    def check(self, producer_id: int, guard: VerificationGuard | None, first_sequence: int) -> None:
        """Refuse a batch that would open a transaction on an answer that is too old, or on none."""
        if guard is NOT_REQUIRED:
            return
        if guard is not None and guard.is_outlived:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, "another leader epoch has begun since the coordinator was asked"
            )
        noted = self._by_producer.get(producer_id)
        if guard is None or noted is not guard:
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
        self._by_producer.pop(producer_id, None)

    def ended(self, producer_id: int, epoch: int) -> None:
        """A marker was appended. Where each transaction has an epoch of its own, the marker of the one before has the epoch of the
        next, and leaves its guard alone (TXN-V4)."""
        found = self._by_producer.get(producer_id)
        if found is not None and not (found.bumps_epoch and found.epoch >= epoch):
            del self._by_producer[producer_id]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those whose batch never came (TXN-P6)."""
        for producer_id, guard in tuple(self._by_producer.items()):
            if now_ms - guard.noted_ms >= expiration_ms:
                del self._by_producer[producer_id]

    def clear(self) -> None:
        """The leader epoch is over, or the log was cut."""
        for guard in self._by_producer.values():
            guard.is_outlived = True
        self._by_producer.clear()
