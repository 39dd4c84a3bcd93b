"""Decisions about running brokers: what follows from a heartbeat.

A broker is FENCED from its registration on, UNFENCED once it has applied that, in CONTROLLED_SHUTDOWN while its leaderships
move, and in SHUTDOWN_NOW at the end. The metadata decides which it is; `Liveness` adds only what the metadata can't know: which
metadata offset the other brokers have applied.

Always true: a heartbeat counts only on the connection that the broker's heartbeats come on, so that no other client takes it out
of service; a broker is unfenced only when it has applied its own registration (B13), and may stop only when it leads nothing,
and, if it did when it asked, when all active brokers have applied that (B14).
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

from strandline.controller import broker_changes
from strandline.controller.brokers import DIRECTORIES_FROM, UNFENCE, check_epoch, fence
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.liveness import Liveness
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.features import METADATA_VERSION
from strandline.metadata.image import BrokerImage, MetadataImage
from strandline.metadata.replay import replay

BEGIN_CONTROLLED_SHUTDOWN = 1
CORDONED_FROM = 30
"""The metadata.version (4.3-IV0) from which log dirs can be cordoned."""


class BrokerHeartbeat(NamedTuple):
    """What a broker says while it runs."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    """Of the newest record that it has applied."""
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: Sequence[Uuid] = ()
    cordoned_log_dirs: Sequence[Uuid] | None = None
    """None while it does not know yet."""
    connection: Hashable = None
    """On which it came."""


class BrokerControlState(enum.Enum):
    FENCED = enum.auto()
    UNFENCED = enum.auto()
    CONTROLLED_SHUTDOWN = enum.auto()
    SHUTDOWN_NOW = enum.auto()


class BrokerHeartbeatReply(NamedTuple):
    is_caught_up: bool
    state: BrokerControlState

    @property
    def is_fenced(self) -> bool:
        return self.state in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)

    @property
    def should_shut_down(self) -> bool:
        return self.state is BrokerControlState.SHUTDOWN_NOW


def heartbeat(
    image: MetadataImage, liveness: Liveness, request: BrokerHeartbeat, now: float, policy: ElectionPolicy
) -> tuple[list[r.MetadataRecord], BrokerHeartbeatReply]:
    """What follows from a heartbeat, which also prolongs the session."""
    broker = check_epoch(image, request.broker_id, request.broker_epoch)
    if not liveness.speaks_for(broker.broker_id, broker.epoch, request.connection, now):
        # Not the broker's own, or of one whose last connection is not known here to be gone: it gets its present state.
        return [], BrokerHeartbeatReply(request.metadata_offset >= broker.epoch, state_of(broker))
    liveness.contact(broker.broker_id, broker.epoch, now, request.metadata_offset)
    liveness.heard_on(broker.broker_id, request.connection)
    if request.connection is not None:
        # After it is known to be a heartbeat of a broker that is registered: any number of others would be remembered else.
        liveness.connection_opened(broker.broker_id, request.connection, now)
    records = _log_dirs_failed(image, broker, request.offline_log_dirs, policy)
    records += _log_dirs_cordoned(image, broker, request.cordoned_log_dirs)
    seen = replay(image, records, image.end_offset + len(records), image.epoch) if records else image
    before = state_of(broker)
    after = next_state(seen, liveness, request)
    # An earlier controller may not have come to the end of moving its leaderships: then this one goes on.
    moves = after != before or (after is BrokerControlState.CONTROLLED_SHUTDOWN and leads_any(seen, broker.broker_id))
    if moves:
        records += _enter(after, seen, broker, policy)
    if after is BrokerControlState.CONTROLLED_SHUTDOWN and (
        moves or liveness.shutdown_offset(broker.broker_id) is None
    ):
        # What an earlier controller wrote is before the end of this log.
        liveness.begin_shutdown(broker.broker_id, image.end_offset + len(records) - 1)
    if after is BrokerControlState.SHUTDOWN_NOW:
        # Its next incarnation need not wait for the session to end.
        liveness.forget(broker.broker_id)
    return records, BrokerHeartbeatReply(request.metadata_offset >= broker.epoch, after)


def state_of(broker: BrokerImage) -> BrokerControlState:
    if broker.fenced:
        return BrokerControlState.FENCED
    return BrokerControlState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerControlState.UNFENCED


def next_state(image: MetadataImage, liveness: Liveness, request: BrokerHeartbeat) -> BrokerControlState:
    """Where a heartbeat takes a broker."""
    broker = image.brokers[request.broker_id]
    state = state_of(broker)
    caught_up = request.metadata_offset >= broker.epoch
    match state, request.want_fence, request.want_shut_down:
        case BrokerControlState.FENCED, _, True:
            return BrokerControlState.SHUTDOWN_NOW
        case BrokerControlState.FENCED, False, False if caught_up:
            return BrokerControlState.UNFENCED
        case BrokerControlState.UNFENCED, True, True:
            return BrokerControlState.SHUTDOWN_NOW
        case BrokerControlState.UNFENCED, True, False:
            return BrokerControlState.FENCED
        case BrokerControlState.UNFENCED, False, True if leads_any(image, broker.broker_id):
            return BrokerControlState.CONTROLLED_SHUTDOWN
        case BrokerControlState.UNFENCED, False, True:
            return BrokerControlState.SHUTDOWN_NOW
        case BrokerControlState.CONTROLLED_SHUTDOWN, _, _ if _may_stop(image, liveness, broker.broker_id):
            return BrokerControlState.SHUTDOWN_NOW
    return state


def _may_stop(image: MetadataImage, liveness: Liveness, broker_id: int) -> bool:
    """It leads nothing, and every active broker knows that (B14)."""
    offset = liveness.shutdown_offset(broker_id)
    if offset is None or leads_any(image, broker_id):
        return False
    return all(liveness.metadata_offset(other.broker_id) >= offset for other in image.brokers.values() if other.active)


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    return any(partition.leader == broker_id for topic in image.topics.values() for partition in topic.partitions)


def _enter(
    state: BrokerControlState, image: MetadataImage, broker: BrokerImage, policy: ElectionPolicy
) -> list[r.MetadataRecord]:
    match state:
        case BrokerControlState.UNFENCED:
            unfenced = _change(broker, fenced=UNFENCE)
            return [unfenced, *broker_changes.broker_unfenced(image, broker.broker_id, policy)]
        case BrokerControlState.CONTROLLED_SHUTDOWN:
            moved = broker_changes.broker_shutting_down(image, broker.broker_id, policy)
            if broker.in_controlled_shutdown:
                return [*moved]
            return [_change(broker, in_controlled_shutdown=BEGIN_CONTROLLED_SHUTDOWN), *moved]
        case BrokerControlState.FENCED | BrokerControlState.SHUTDOWN_NOW:
            return fence(image, broker.broker_id, policy)


def _log_dirs_failed(
    image: MetadataImage, broker: BrokerImage, offline: Collection[Uuid], policy: ElectionPolicy
) -> list[r.MetadataRecord]:
    """The broker leaves leadership and ISR of the partitions in log dirs that failed since they were registered."""
    failed = set(broker.log_dirs).intersection(offline)
    if not failed or image.features.get(METADATA_VERSION, 0) < DIRECTORIES_FROM:
        return []
    records: list[r.MetadataRecord] = [*broker_changes.dirs_offline(image, broker.broker_id, failed, policy)]
    remaining = tuple(directory for directory in broker.log_dirs if directory not in failed)
    if remaining:
        # The record can't say that none is left; a broker without a log dir stops by itself.
        records.append(_change(broker, log_dirs=remaining))
    return records


def _log_dirs_cordoned(
    image: MetadataImage, broker: BrokerImage, cordoned: Sequence[Uuid] | None
) -> list[r.MetadataRecord]:
    """Log dirs that get no new partitions from now on; None if the broker does not say yet."""
    if cordoned is None or image.features.get(METADATA_VERSION, 0) < CORDONED_FROM:
        return []
    return [] if set(cordoned) == set(broker.cordoned_log_dirs) else [_change(broker, cordoned=tuple(cordoned))]


def _change(
    broker: BrokerImage,
    *,
    fenced: int = 0,
    in_controlled_shutdown: int = 0,
    log_dirs: tuple[Uuid, ...] = (),
    cordoned: tuple[Uuid, ...] | None = None,
) -> r.BrokerRegistrationChangeRecord:
    return r.BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=log_dirs,
        cordoned_log_dirs=cordoned,
    )
