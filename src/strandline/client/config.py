"""What can be set of a client, under Kafka's names with '_' for '.', and with Kafka's defaults.

Always true: a setting that contradicts another is refused when the object is made, not when a record is lost.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from strandline.client.core.backoff import RECONNECT, RETRY, Backoff
from strandline.client.core.connection import FRAME_BYTES_MAX
from strandline.records.compression import CompressionType

ACKS_ALL = -1
TRANSACTION_TIMEOUT_MS = 60_000
CLOSE_TIMEOUT_S = 30.0
"""How long a consumer takes to commit and to leave its group, at most."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    client_id: str = "strandline"
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    """How long an operation tries before it gives up, over all its requests."""
    connection_setup_timeout_ms: int = 10_000
    metadata_max_age_ms: int = 300_000
    retry_backoff: Backoff = RETRY
    reconnect_backoff: Backoff = RECONNECT
    frame_bytes_max: int = FRAME_BYTES_MAX


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    acks: int = ACKS_ALL
    enable_idempotence: bool | None = None
    """None: as far as acks allow it."""
    batch_size: int = 16_384
    linger_ms: float = 5
    compression_type: CompressionType = CompressionType.NONE
    compression_level: int | None = None
    max_request_size: int = 1_048_576
    buffer_memory: int = 33_554_432
    max_in_flight_requests_per_connection: int = 5
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000
    transactional_id: str | None = None
    """None: no transactions. Who comes later under the same id fences who had it before."""
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    """The coordinator aborts a transaction that is open for longer, and fences the producer."""
    transaction_two_phase_commit_enable: bool = False
    """Another system decides how transactions end (KIP-939): they have no timeout, and one that nobody ends holds up its
    readers for ever. Brokers have to allow it."""

    def __post_init__(self) -> None:
        if self.acks not in (ACKS_ALL, 0, 1):
            raise ValueError(f"acks is -1 (all), 0 or 1, not {self.acks}")
        if self.enable_idempotence and self.acks != ACKS_ALL:
            raise ValueError("enable_idempotence needs acks=-1 (all)")
        if self.max_in_flight_requests_per_connection < 1:
            raise ValueError("max_in_flight_requests_per_connection is at least 1")
        if self.idempotent and self.max_in_flight_requests_per_connection > 5:
            raise ValueError("enable_idempotence needs max_in_flight_requests_per_connection of at most 5")
        if self.transactional_id == "":
            raise ValueError("transactional_id is not empty; None is no transactions")
        if self.transactional_id is not None and not self.idempotent:
            raise ValueError("transactional_id needs acks=-1 (all) and enable_idempotence")
        if self.transaction_two_phase_commit_enable:
            if self.transactional_id is None:
                raise ValueError("transaction_two_phase_commit_enable needs a transactional_id")
            if self.transaction_timeout_ms != TRANSACTION_TIMEOUT_MS:
                raise ValueError("transaction_timeout_ms has no meaning with transaction_two_phase_commit_enable")

    @property
    def record_timeout_ms(self) -> int:
        """delivery_timeout_ms, but a record has no use for more time than its transaction has (TXN-TC6)."""
        if self.transactional_id is None or self.transaction_two_phase_commit_enable:
            return self.delivery_timeout_ms
        return min(self.delivery_timeout_ms, self.transaction_timeout_ms)

    @property
    def idempotent(self) -> bool:
        return self.acks == ACKS_ALL if self.enable_idempotence is None else self.enable_idempotence


ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""What partition_assignment_strategy may name."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    group_id: str | None = None
    """None: no group, so nothing is committed."""
    group_instance_id: str | None = None
    """A static member: who comes back under this name gets its partitions back without a rebalance."""
    group_protocol: Literal["classic", "consumer"] = "classic"
    group_remote_assignor: str | None = None
    """The coordinator's assignor, if group_protocol is `consumer`; None leaves the choice to it."""
    partition_assignment_strategy: tuple[str, ...] = ("range", "cooperative-sticky")
    """If group_protocol is `classic`, in order of preference. Rebalances are cooperative if all of these can."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    """These two hold for group_protocol `classic`; with `consumer` the coordinator says."""
    max_poll_interval_ms: int = 300_000
    """Who does not poll for that long leaves the group."""
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    allow_auto_create_topics: bool = True
    """Of topics that are subscribed to by name."""
    auto_offset_reset: Literal["earliest", "latest", "none"] = "latest"
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    fetch_max_wait_ms: int = 500
    max_poll_records: int = 500
    check_crcs: bool = True
    request_timeout_ms: int = 30_000

    def __post_init__(self) -> None:
        if self.auto_offset_reset not in ("earliest", "latest", "none"):
            raise ValueError(f"auto_offset_reset is 'earliest', 'latest' or 'none', not {self.auto_offset_reset!r}")
        if self.isolation_level not in ("read_uncommitted", "read_committed"):
            raise ValueError(f"isolation_level is 'read_uncommitted' or 'read_committed', not {self.isolation_level!r}")
        if self.group_id == "":
            raise ValueError("group_id is not empty; None is no group")
        if self.group_protocol not in ("classic", "consumer"):
            raise ValueError(f"group_protocol is 'classic' or 'consumer', not {self.group_protocol!r}")
        if self.group_remote_assignor is not None and self.group_protocol != "consumer":
            raise ValueError("group_remote_assignor needs group_protocol='consumer'")
        strategies = self.partition_assignment_strategy
        if not strategies or not set(strategies) <= set(ASSIGNORS):
            raise ValueError(f"partition_assignment_strategy is some of {', '.join(ASSIGNORS)}, not {strategies!r}")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError("heartbeat_interval_ms is less than session_timeout_ms")

    @property
    def is_read_committed(self) -> bool:
        return self.isolation_level == "read_committed"
