"""Mechanisms switched off: one decision of the code is replaced while a story is played, and put back afterwards.

    leader-epochs    `LeaderEpochs.end_offset_for`: every epoch ends at the log end, so logs are compared by offsets alone;
                     and `Partition.follow`: with nothing else to go by, a new follower cuts its log at its high watermark
    high-watermark   `Partition.readable_end`: consumers read up to the log end
    epoch-bump       `TransactionMetadata.fenced` and `initialized`: who takes over a transactional id gets the same epoch
    last-stable-offset  `Partition.readable_end`: readers of committed records read up to the high watermark
    lag-by messages  `Follower.is_caught_up`: by how many messages it lags, not since when

Idempotence, transactions, acks, verification and unclean elections need nothing of this: they are settings of a producer, of a
topic, of a broker.

Always true: the server has no such switch; nothing is replaced outside of `swapped`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from strandline.log.epochs import LeaderEpochs
from strandline.replica.followers import FollowerProgress
from strandline.replica.partition import Partition
from strandline.stories.options import Option
from strandline.transactions.metadata import TransactionMetadata

LAG_MESSAGES_MAX = 5
"""As the notes set `replica.lag.max.messages`, which Kafka has no more."""


@contextmanager
def swapped(options: Collection[Option]) -> Iterator[None]:
    with ExitStack() as stack:
        for option in options:
            for owner, name, replacement in SWAPS.get(option, ()):
                stack.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, replacement)
        yield


# Without leader epochs

_follow = Partition.follow


def _ends_at_the_log_end(self: LeaderEpochs, epoch: int, log_end_offset: int) -> tuple[int, int]:
    return epoch, log_end_offset


def _follow_from_the_high_watermark(partition: Partition, epoch_before: int) -> None:
    _follow(partition, epoch_before)
    if partition.leader_epoch > epoch_before and partition.high_watermark < partition.log.log_end_offset:
        partition.truncate(partition.high_watermark, "what is above the high watermark can't be trusted")


# Without a high watermark


def _readable_to_the_log_end(self: Partition, isolation_level: int) -> int:
    return self.log.log_end_offset


# Without an epoch bump

_fenced, _initialized = TransactionMetadata.fenced, TransactionMetadata.initialized


def _fenced_in_its_epoch(self: TransactionMetadata, wall_ms: int) -> TransactionMetadata:
    return replace(_fenced(self, wall_ms), epoch=self.epoch)


def _initialized_in_its_epoch(
    self: TransactionMetadata, expected_epoch: int | None, timeout_ms: int, wall_ms: int
) -> TransactionMetadata:
    return replace(_initialized(self, expected_epoch, timeout_ms, wall_ms), epoch=max(self.epoch, 0))


# Without a last stable offset


def _readable_to_the_high_watermark(self: Partition, isolation_level: int) -> int:
    return self.high_watermark


# Lag by messages


def _lags_by_few_messages(self: FollowerProgress, leader_end: int, now: float, lag_time_max_s: float) -> bool:
    return leader_end - self.log_end_offset <= LAG_MESSAGES_MAX


SWAPS: dict[Option, tuple[tuple[object, str, object], ...]] = {
    Option.WITHOUT_LEADER_EPOCHS: (
        (LeaderEpochs, "end_offset_for", _ends_at_the_log_end),
        (Partition, "follow", _follow_from_the_high_watermark),
    ),
    Option.WITHOUT_HIGH_WATERMARK: ((Partition, "readable_end", _readable_to_the_log_end),),
    Option.WITHOUT_EPOCH_BUMP: (
        (TransactionMetadata, "fenced", _fenced_in_its_epoch),
        (TransactionMetadata, "initialized", _initialized_in_its_epoch),
    ),
    Option.WITHOUT_LAST_STABLE_OFFSET: ((Partition, "readable_end", _readable_to_the_high_watermark),),
    Option.LAG_BY_MESSAGES: ((FollowerProgress, "is_caught_up", _lags_by_few_messages),),
}
