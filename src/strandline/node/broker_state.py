"""The state of a broker in its cluster, and what it sends to the active controller next (KIP-631).

    NOT_RUNNING -> STARTING                          the node starts: register, then heartbeats
    STARTING -> RECOVERY                             it has applied its own registration
    RECOVERY -> RUNNING                              its logs are open, it asked to be unfenced, and is
    RUNNING -> PENDING_CONTROLLED_SHUTDOWN           it is to stop: others take over what it leads
    any -> SHUTTING_DOWN                             nothing more is sent
    RECOVERY, RUNNING -> STARTING                    the controller does not know this registration (any more): register again

Kafka's broker never registers again: unregistered by mistake, or overtaken while it was frozen, it stays fenced and
silent until it is restarted. Ours registers again under the same incarnation, and ends if another process lives under
its id by now (DUPLICATE_BROKER_REGISTRATION): two must not take turns.

Always true: one message is in flight at a time; what changed meanwhile is sent at once after it; the epoch of a clean
shutdown is sent only in the first registration, because from then on this process answers for the logs.
"""

from __future__ import annotations

from collections.abc import Set
from enum import IntEnum
from typing import NamedTuple

from strandline.errors import ErrorCode
from strandline.ids import Uuid

UNKNOWN_EPOCH = -1
RETRY_S = 0.1
"""After no answer, or a refusal of the registration: an old session under our id ends soon."""
CATCHING_UP_S = 0.05
"""Between heartbeats while the controller still has us fenced though we are ready."""
STOPPING_S = 0.01
"""Before the second heartbeat that asks to shut down; then double each time."""
STOPPING_UNHEARD_S = 1.0
"""With no controller to be heard, a broker that wants to stop stops. The next leader of the quorum sees its connections
close."""

HOPELESS = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "its log dirs belong to another cluster",
    ErrorCode.UNSUPPORTED_VERSION: "the cluster has finalized a feature, or a level of one, that this node does not support",
    ErrorCode.INVALID_REGISTRATION: "the cluster does not take what it says of itself",
}
"""Refusals of the first registration that waiting does not change, and what they mean."""
UNREGISTERED = frozenset({ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED})


class BrokerState(IntEnum):
    """Kafka's numbers."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class BrokerTimings(NamedTuple):
    heartbeat_interval_s: float
    registration_timeout_s: float
    dir_failure_timeout_s: float


# What happens


class Start(NamedTuple):
    pass


class Ready(NamedTuple):
    """The logs are open: it may be unfenced."""


class Applied(NamedTuple):
    """The metadata is applied here up to and with this offset."""

    offset: int


class ControllerChanged(NamedTuple):
    """Another controller is active, or the connection to it closed: it should hear from us."""


class DirFailed(NamedTuple):
    directory_id: Uuid


class Registered(NamedTuple):
    broker_epoch: int


class Answered(NamedTuple):
    """To a heartbeat."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    heartbeat: Heartbeat


class ControllerRefused(NamedTuple):
    code: ErrorCode


class ControllerUnanswered(NamedTuple):
    reason: str


class ShutDown(NamedTuple):
    controlled: bool
    timeout_s: float


class BrokerTick(NamedTuple):
    """The deadline has come."""


Event = (
    Start
    | Ready
    | Applied
    | ControllerChanged
    | DirFailed
    | Registered
    | Answered
    | ControllerRefused
    | ControllerUnanswered
    | ShutDown
    | BrokerTick
)

# What to do


class Register(NamedTuple):
    previous_broker_epoch: int


class Heartbeat(NamedTuple):
    broker_epoch: int
    metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_dirs: tuple[Uuid, ...]


class LeaveCluster(NamedTuple):
    """The node can't go on."""

    reason: str


Effect = Register | Heartbeat | LeaveCluster


class BrokerLife:
    def __init__(self, timings: BrokerTimings, previous_broker_epoch: int = UNKNOWN_EPOCH) -> None:
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = UNKNOWN_EPOCH
        self.is_registered = False
        self._timings = timings
        self._previous_broker_epoch = previous_broker_epoch
        self._ready = False
        self._metadata_offset = -1
        self._in_flight = False
        self._send_again = False
        self._due = float("inf")
        self._register_by = float("inf")
        self._why_not = "the active controller did not answer"
        self._offline_dirs: dict[Uuid, float] = {}
        """Until when the controller must know of each; for ever once it does."""
        self._stop_by = float("inf")
        self._heard_at = 0.0
        self._stopping_s = STOPPING_S

    @property
    def deadline(self) -> float:
        """When `step` must be called with a Tick, at the latest."""
        if self.state in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN):
            return float("inf")
        due = float("inf") if self._in_flight else self._due
        return min(due, self._register_by, self._give_up_stopping_at, *self._offline_dirs.values())

    @property
    def offline_dirs(self) -> Set[Uuid]:
        """Log dirs that failed since the start. A broker that registers again does not name them."""
        return self._offline_dirs.keys()

    @property
    def _give_up_stopping_at(self) -> float:
        if self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return float("inf")
        return min(self._stop_by, self._heard_at + STOPPING_UNHEARD_S)

    def step(self, event: Event, now: float) -> list[Effect]:
        """What to do now that this happened."""
        if self.state is BrokerState.SHUTTING_DOWN:
            return []
        match event:
            case Start():
                self.state = BrokerState.STARTING
                self._register_by = now + self._timings.registration_timeout_s
                self._due = now
            case Ready():
                self._ready = True
                self._send_soon(now)
            case Applied(offset):
                catches_up = self._metadata_offset < self.broker_epoch <= offset
                self._metadata_offset = offset
                if catches_up and self.is_registered:
                    self._send_soon(now)
            case ControllerChanged():
                self._send_soon(now)
            case DirFailed(directory_id):
                if directory_id not in self._offline_dirs:
                    self._offline_dirs[directory_id] = now + self._timings.dir_failure_timeout_s
                    self._send_soon(now)
            case Registered(broker_epoch):
                self.broker_epoch = broker_epoch
                self.is_registered = True
                self._previous_broker_epoch = UNKNOWN_EPOCH
                self._register_by = float("inf")
                self._ended(now, 0.0)
            case Answered():
                self._answered(event, now)
            case ControllerRefused(code):
                return self._refused(code, now) or self._due_now(now)
            case ControllerUnanswered(reason):
                self._why_not = reason
                self._failed(now, RETRY_S)
            case ShutDown(controlled, timeout_s):
                self._shut_down(controlled, timeout_s, now)
            case BrokerTick():
                pass
        return self._due_now(now)

    def _answered(self, answer: Answered, now: float) -> None:
        self._heard_at = now
        for directory_id in answer.heartbeat.offline_dirs:
            self._offline_dirs[directory_id] = float("inf")
        delay_s = self._timings.heartbeat_interval_s
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            if answer.heartbeat.want_shut_down and answer.should_shut_down:
                self.state = BrokerState.SHUTTING_DOWN
            delay_s = min(self._stopping_s, delay_s)
            self._stopping_s *= 2
            self._ended(now, delay_s)
            return
        if self.state is BrokerState.STARTING and answer.is_caught_up:
            self.state = BrokerState.RECOVERY
        if self.state is BrokerState.RECOVERY and not answer.is_fenced:
            self.state = BrokerState.RUNNING
        if self._ready and answer.is_fenced:
            delay_s = min(CATCHING_UP_S, delay_s)
        self._ended(now, delay_s)

    def _refused(self, code: ErrorCode, now: float) -> list[Effect]:
        self._heard_at = now
        self._why_not = f"the controller says {code.name}"
        if not self.is_registered:
            self._failed(now, RETRY_S)
            if self.broker_epoch != UNKNOWN_EPOCH and code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                return self._fail("another process has taken this broker's place; is node.id given twice?")
            if self.broker_epoch == UNKNOWN_EPOCH and code in HOPELESS:
                return self._fail(f"this broker can't be registered: {HOPELESS[code]} ({code.name})")
        elif code in UNREGISTERED:
            self.is_registered = False
            self._failed(now, RETRY_S)
            stopping = self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self.state = BrokerState.SHUTTING_DOWN if stopping else BrokerState.STARTING
        else:
            self._failed(now, self._timings.heartbeat_interval_s)
        return []

    def _shut_down(self, controlled: bool, timeout_s: float, now: float) -> None:
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return
        if not controlled or self.state is not BrokerState.RUNNING:
            self.state = BrokerState.SHUTTING_DOWN
            return
        self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        self._stop_by = now + timeout_s
        self._heard_at = now
        self._send_soon(now)

    def _send_soon(self, now: float) -> None:
        self._send_again = self._in_flight
        self._due = min(self._due, now)

    def _ended(self, now: float, delay_s: float) -> None:
        """What was in flight is answered; the next one after `delay_s`, or at once if something changed meanwhile."""
        self._due = now if self._send_again else now + delay_s
        self._in_flight = self._send_again = False

    def _failed(self, now: float, delay_s: float) -> None:
        """The same, but never at once: that would go round in circles."""
        self._send_again = False
        self._ended(now, delay_s)

    def _fail(self, reason: str) -> list[Effect]:
        self.state = BrokerState.SHUTTING_DOWN
        return [LeaveCluster(reason)]

    def _due_now(self, now: float) -> list[Effect]:
        if self.state in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN):
            return []
        if now >= self._register_by:
            return self._fail(
                f"this broker could not be registered within {self._timings.registration_timeout_s:g} s: {self._why_not}"
            )
        if any(now >= until for until in self._offline_dirs.values()):
            return self._fail("the controller did not learn in time that a log dir failed")
        if now >= self._give_up_stopping_at:
            self.state = BrokerState.SHUTTING_DOWN
            return []
        if self._in_flight or now < self._due:
            return []
        self._in_flight = True
        if not self.is_registered:
            return [Register(self._previous_broker_epoch)]
        return [
            Heartbeat(
                self.broker_epoch,
                self._metadata_offset,
                not self._ready,
                self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
                tuple(self._offline_dirs),
            )
        ]
