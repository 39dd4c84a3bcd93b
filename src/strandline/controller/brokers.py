"""Decisions about brokers: who they are, and when they are no more. What they become in between is in `heartbeats.py`.

Always true: a broker epoch is the offset of the record that gave it, so it is never given twice; a fenced broker is in no ISR
and leads nothing (I5), from the same decision on that fences it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from strandline.controller import broker_changes
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.liveness import Liveness
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.features import KRAFT_VERSION, METADATA_VERSION, SUPPORTED
from strandline.metadata.image import BrokerImage, Endpoint, MetadataImage
from strandline.metadata.replay import replay

UNKNOWN_EPOCH = -1
FENCE, UNFENCE = 1, -1

SECURITY_PROTOCOLS = range(4)
"""PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."""
DIRECTORIES_FROM = 17
"""The metadata.version (3.7-IV2) from which the metadata knows log dirs."""
RESERVED_DIRECTORY_IDS = 100
"""So many ids, from zero on, are no log dir's."""


class BrokerRegistration(NamedTuple):
    """What a broker says of itself when it starts."""

    broker_id: int
    incarnation_id: Uuid
    endpoints: Sequence[Endpoint]
    features: Sequence[tuple[str, int, int]]
    log_dirs: Sequence[Uuid]
    rack: str | None = None
    previous_broker_epoch: int = UNKNOWN_EPOCH
    """The epoch that it had when it last stopped in order."""


def check_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerImage:
    """The broker, if this is its newest epoch (B13); else STALE_BROKER_EPOCH."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is not registered.")
    if broker.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} has epoch {broker.epoch}, not {broker_epoch}."
        )
    return broker


# Registration


def register(
    image: MetadataImage,
    wanted: BrokerRegistration,
    policy: ElectionPolicy,
    *,
    is_live: bool,
    kraft_version: int,
) -> tuple[list[r.MetadataRecord], int]:
    """Register a broker that starts, fenced; the records and its broker epoch. The same incarnation keeps what it has.

    `is_live`: a broker of this id has a session that is not over.
    """
    known = image.brokers.get(wanted.broker_id)
    same_incarnation = known is not None and known.incarnation_id == wanted.incarnation_id
    if is_live and known is not None and not same_incarnation:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"A broker with id {wanted.broker_id} is alive; if it is this one before a restart, its session will end soon.",
        )
    directories = image.features.get(METADATA_VERSION, 0) >= DIRECTORIES_FROM
    if directories:
        _check_log_dirs(image, wanted)
    _check_endpoints(wanted.endpoints)
    check_features(wanted.features, {**image.features, KRAFT_VERSION: kraft_version})
    log_dirs = tuple(wanted.log_dirs) if directories else ()
    if known is not None and same_incarnation:
        return _amend(image, wanted, log_dirs, known), known.epoch
    records: list[r.MetadataRecord] = [*_leave_behind(image, wanted, known, policy)]
    # The registration comes last: if only the records before it are committed, the broker registers again and all is made good.
    epoch = image.end_offset + len(records)
    return [*records, _registration(wanted, log_dirs, epoch)], epoch


def _registration(
    wanted: BrokerRegistration,
    log_dirs: tuple[Uuid, ...],
    epoch: int,
    known: BrokerImage | None = None,
) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(
        broker_id=wanted.broker_id,
        incarnation_id=wanted.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(
            r.BrokerEndpoint(name=e.listener, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in wanted.endpoints
        ),
        features=tuple(
            r.BrokerFeature(name=name, min_supported_version=least, max_supported_version=most)
            for name, least, most in wanted.features
        ),
        rack=wanted.rack,
        fenced=known is None or known.fenced,
        in_controlled_shutdown=known is not None and known.in_controlled_shutdown,
        log_dirs=log_dirs,
        cordoned_log_dirs=known.cordoned_log_dirs or None if known is not None else None,
    )


def _amend(
    image: MetadataImage, wanted: BrokerRegistration, log_dirs: tuple[Uuid, ...], known: BrokerImage
) -> list[r.MetadataRecord]:
    """The same incarnation again: its answer was lost, or its endpoints, rack or log dirs changed."""
    record = _registration(wanted, log_dirs, known.epoch, known)
    amended = replay(image, [record], image.end_offset + 1, image.epoch).brokers[wanted.broker_id]
    return [] if amended == known else [record]


def _leave_behind(
    image: MetadataImage, wanted: BrokerRegistration, known: BrokerImage | None, policy: ElectionPolicy
) -> list[r.PartitionChangeRecord]:
    """What the incarnation before led and replicated, this one does not. If that did not stop in order it may have lost what
    it had acknowledged, so that it is not even eligible to lead (B11)."""
    if known is not None and known.epoch == wanted.previous_broker_epoch:
        return broker_changes.broker_fenced(image, wanted.broker_id, policy)
    return broker_changes.broker_uncleanly_restarted(image, wanted.broker_id, policy)


def _check_log_dirs(image: MetadataImage, wanted: BrokerRegistration) -> None:
    if not wanted.log_dirs:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "The registration names no log dir.")
    if any(int.from_bytes(directory) < RESERVED_DIRECTORY_IDS for directory in wanted.log_dirs):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "The registration names a reserved directory id.")
    if len(set(wanted.log_dirs)) != len(wanted.log_dirs):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "The registration names a log dir twice.")
    for other in image.brokers.values():
        if other.broker_id != wanted.broker_id and not set(wanted.log_dirs).isdisjoint(other.log_dirs):
            raise KafkaError(
                ErrorCode.INVALID_REGISTRATION, f"The registration names a log dir of broker {other.broker_id}."
            )


def _check_endpoints(endpoints: Sequence[Endpoint]) -> None:
    if not endpoints:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "The registration names no listener.")
    if len({endpoint.listener for endpoint in endpoints}) != len(endpoints):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "The registration names a listener twice.")
    if any(endpoint.security_protocol not in SECURITY_PROTOCOLS for endpoint in endpoints):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "The registration names an unknown security protocol.")


def check_features(supported: Sequence[tuple[str, int, int]], finalized: Mapping[str, int]) -> None:
    """UNSUPPORTED_VERSION unless the broker can work with every feature at its finalized level.

    A feature that this software does not serve at all, in metadata that Apache Kafka wrote, is not checked.
    """
    ranges = {name: range(least, most + 1) for name, least, most in supported}
    if METADATA_VERSION not in ranges:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, f"The registration does not name {METADATA_VERSION}.")
    for name in (*ranges, *(name for name in finalized if name in SUPPORTED)):
        level = finalized.get(name, 0)
        if level not in ranges.get(name, range(1)):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"The broker does not support {name} at level {level}.")


# The end


def fence(image: MetadataImage, broker_id: int, policy: ElectionPolicy) -> list[r.MetadataRecord]:
    """Take a broker out of all ISRs and leaderships and fence it; nothing if it is fenced or gone already."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return []
    fenced = r.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=FENCE)
    return [*broker_changes.broker_fenced(image, broker_id, policy), fenced]


def fence_one_overdue(
    image: MetadataImage, liveness: Liveness, now: float, policy: ElectionPolicy
) -> tuple[list[r.MetadataRecord], int | None]:
    """Fence the broker whose session ended first; the records and its id. One at a time: the next decision sees this one."""
    for broker_id in liveness.overdue(now):
        liveness.forget(broker_id)
        if records := fence(image, broker_id, policy):
            return records, broker_id
    return [], None


def unregister(image: MetadataImage, broker_id: int, policy: ElectionPolicy) -> list[r.MetadataRecord]:
    """Take a broker out of the cluster; its id may be registered again."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"There is no broker {broker_id}.")
    return [
        *broker_changes.broker_unregistered(image, broker_id, policy),
        r.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch),
    ]
