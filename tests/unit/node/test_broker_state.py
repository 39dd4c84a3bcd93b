"""What a broker says next: transcripts of events and what follows from them, without a clock."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="comparison-overlap, unreachable"

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.node.broker_state import (
    Answered,
    Applied,
    BrokerLife,
    BrokerState,
    BrokerTick,
    BrokerTimings,
    ControllerChanged,
    ControllerRefused,
    ControllerUnanswered,
    DirFailed,
    Effect,
    Event,
    Heartbeat,
    LeaveCluster,
    Ready,
    Register,
    Registered,
    ShutDown,
    Start,
)

INTERVAL_S = 0.5
DIR = Uuid(bytes(15) + b"\1")


class Life:
    """A life with its time: `at` happens then, `wait` goes on to the next deadline."""

    def __init__(self, previous_broker_epoch: int = -1) -> None:
        self.life = BrokerLife(BrokerTimings(INTERVAL_S, 60.0, 30.0), previous_broker_epoch)
        self.now = 100.0
        self.in_flight: Effect | None = None

    @property
    def state(self) -> BrokerState:
        return self.life.state

    def happens(self, event: Event, after_s: float = 0.0) -> list[Effect]:
        self.now += after_s
        effects = self.life.step(event, self.now)
        for effect in effects:
            if not isinstance(effect, LeaveCluster):
                assert self.in_flight is None, "one message is in flight at a time"
                self.in_flight = effect
        return effects

    def answered(self, *, caught_up: bool = True, fenced: bool = False, stop: bool = False) -> list[Effect]:
        heartbeat, self.in_flight = self.in_flight, None
        assert isinstance(heartbeat, Heartbeat)
        return self.happens(Answered(caught_up, fenced, stop, heartbeat))

    def ends(self, event: Event, after_s: float = 0.0) -> list[Effect]:
        """What is in flight ends so."""
        assert self.in_flight is not None
        self.in_flight = None
        return self.happens(event, after_s)

    def wait(self) -> tuple[float, list[Effect]]:
        """How long until something is due, and what that is."""
        before = self.now
        self.now = self.life.deadline
        return round(self.now - before, 6), self.happens(BrokerTick())

    def run(self) -> Life:
        """Until it is RUNNING, with the next heartbeat due."""
        self.happens(Start())
        self.happens(Applied(7))
        self.ends(Registered(5))
        self.answered(fenced=True)
        self.happens(Ready())
        self.answered()
        assert self.state is BrokerState.RUNNING
        return self


def heartbeat(**fields: object) -> Heartbeat:
    values = {
        "broker_epoch": 5,
        "metadata_offset": 7,
        "want_fence": False,
        "want_shut_down": False,
        "offline_dirs": (),
    } | fields
    return Heartbeat(**values)  # type: ignore[arg-type]


def test_from_the_start_to_running():
    life = Life(previous_broker_epoch=3)
    assert life.happens(Start()) == [Register(3)]
    assert life.state is BrokerState.STARTING
    assert life.happens(Applied(4)) == []
    assert life.ends(Registered(5)) == [heartbeat(metadata_offset=4, want_fence=True)]
    assert life.answered(caught_up=False, fenced=True) == []
    assert life.happens(Applied(5), 0.01) == [heartbeat(metadata_offset=5, want_fence=True)], "it caught up: at once"
    life.answered(caught_up=True, fenced=True)
    assert life.state is BrokerState.RECOVERY
    assert life.happens(Ready(), 0.2) == [heartbeat(metadata_offset=5)]
    assert life.answered(fenced=False) == []
    assert life.state is BrokerState.RUNNING
    assert life.wait() == (INTERVAL_S, [heartbeat(metadata_offset=5)])


def test_it_is_running_after_one_answer_if_it_was_ready_and_caught_up_before():
    life = Life()
    life.happens(Start())
    life.happens(Ready())
    life.happens(Applied(9))
    assert life.ends(Registered(5)) == [heartbeat(metadata_offset=9)]
    life.answered()
    assert life.state is BrokerState.RUNNING


def test_what_changes_while_a_heartbeat_is_in_flight_is_told_right_after_it():
    life = Life().run()
    life.wait()
    assert life.happens(ControllerChanged()) == []
    assert life.answered() == [heartbeat()]
    assert life.answered() == []


def test_it_tells_a_new_controller_at_once():
    life = Life().run()
    assert life.happens(ControllerChanged(), 0.1) == [heartbeat()]


def test_a_broker_that_is_ready_but_fenced_asks_again_soon():
    life = Life().run()
    life.wait()
    life.answered(caught_up=False, fenced=True)
    assert life.wait() == (0.05, [heartbeat()])


def test_a_registration_without_an_answer_is_sent_again_with_the_same_epoch():
    life = Life(previous_broker_epoch=3)
    life.happens(Start())
    assert life.ends(ControllerUnanswered("nobody there"), 1.0) == []
    assert life.wait() == (0.1, [Register(3)])


def test_an_old_session_under_its_id_is_waited_for():
    life = Life()
    life.happens(Start())
    for _ in range(30):
        life.ends(ControllerRefused(ErrorCode.DUPLICATE_BROKER_REGISTRATION))
        assert life.wait() == (0.1, [Register(-1)])
    assert life.ends(Registered(5)) == [heartbeat(metadata_offset=-1, want_fence=True)]


def test_registration_has_its_time():
    life = Life()
    life.happens(Start())
    life.ends(ControllerRefused(ErrorCode.DUPLICATE_BROKER_REGISTRATION), 59.95)
    [failed] = life.wait()[1]
    assert isinstance(failed, LeaveCluster)
    assert "within 60 s: the controller says DUPLICATE_BROKER_REGISTRATION" in failed.reason
    assert life.state is BrokerState.SHUTTING_DOWN


def test_registration_has_its_time_though_an_attempt_is_in_flight():
    life = Life()
    life.happens(Start())
    waited_s, [failed] = life.wait()
    assert waited_s == 60.0
    assert isinstance(failed, LeaveCluster)
    assert life.ends(Registered(5)) == []


def test_what_waiting_does_not_change_fails_at_once():
    life = Life()
    life.happens(Start())
    [failed] = life.ends(ControllerRefused(ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert isinstance(failed, LeaveCluster)
    assert "INCONSISTENT_CLUSTER_ID" in failed.reason


@pytest.mark.parametrize("code", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED])
def test_a_registration_that_is_gone_is_made_again_and_never_as_after_a_clean_shutdown(code):
    life = Life(previous_broker_epoch=3).run()
    life.wait()
    life.ends(ControllerRefused(code))
    assert life.wait() == (0.1, [Register(-1)])
    life.ends(ControllerUnanswered("nobody there"))
    assert life.wait() == (0.1, [Register(-1)])
    assert life.ends(Registered(20)) == [heartbeat(broker_epoch=20)]
    life.answered(caught_up=False, fenced=True)
    assert life.state is BrokerState.STARTING
    assert life.happens(Applied(20)) == [heartbeat(broker_epoch=20, metadata_offset=20)]
    life.answered()
    assert life.state is BrokerState.RUNNING


def test_a_broker_whose_place_another_has_taken_ends():
    life = Life().run()
    life.wait()
    life.ends(ControllerRefused(ErrorCode.STALE_BROKER_EPOCH))
    life.wait()
    [failed] = life.ends(ControllerRefused(ErrorCode.DUPLICATE_BROKER_REGISTRATION))
    assert isinstance(failed, LeaveCluster)
    assert "taken this broker's place" in failed.reason
    assert life.state is BrokerState.SHUTTING_DOWN


def test_another_refusal_of_a_heartbeat_waits_for_the_next_one():
    life = Life().run()
    life.wait()
    life.happens(ControllerChanged())
    life.ends(ControllerRefused(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert life.wait() == (INTERVAL_S, [heartbeat()])


def test_a_failed_log_dir_is_told_at_once_and_ever_after():
    life = Life().run()
    assert life.happens(DirFailed(DIR)) == [heartbeat(offline_dirs=(DIR,))]
    life.answered()
    assert life.happens(DirFailed(DIR)) == []
    assert life.wait() == (INTERVAL_S, [heartbeat(offline_dirs=(DIR,))])


def test_a_failed_log_dir_that_can_not_be_told_ends_the_node():
    life = Life().run()
    life.happens(DirFailed(DIR))
    for _ in range(10):
        life.ends(ControllerUnanswered("nobody there"), 1.4)
        assert life.wait()[0] == 0.1
    waited_s, [failed] = life.wait()
    assert waited_s == 15.0
    assert isinstance(failed, LeaveCluster)


def test_a_controlled_shutdown_asks_until_it_may():
    life = Life().run()
    assert life.happens(ShutDown(True, 30.0)) == [heartbeat(want_shut_down=True)]
    assert life.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    waits = []
    for _ in range(8):
        life.answered()
        waits.append(life.wait()[0])
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]
    assert life.answered(stop=True) == []
    assert life.state is BrokerState.SHUTTING_DOWN
    assert life.life.deadline == float("inf")
    assert life.happens(ControllerChanged()) == []


def test_a_heartbeat_that_did_not_ask_to_stop_is_no_leave_to_stop():
    life = Life().run()
    life.wait()
    life.happens(ShutDown(True, 30.0))
    assert life.answered(stop=True) == [heartbeat(want_shut_down=True)]
    assert life.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN


def test_a_controlled_shutdown_ends_when_its_time_is_over():
    life = Life().run()
    begun = life.now
    life.happens(ShutDown(True, 10.0))
    while life.state is not BrokerState.SHUTTING_DOWN:
        if life.in_flight is not None:
            life.answered()
        life.wait()
    assert life.now - begun == 10.0


def test_with_no_controller_to_be_heard_it_stops_soon():
    life = Life().run()
    life.happens(ShutDown(True, 30.0))
    assert life.wait() == (1.0, [])
    assert life.state is BrokerState.SHUTTING_DOWN


@pytest.mark.parametrize("event", [ShutDown(False, 30.0), ShutDown(True, 30.0)])
def test_it_stops_at_once_if_it_need_not_ask(event):
    life = Life()
    if not event.controlled:
        life.run()
    else:
        life.happens(Start())
    assert life.happens(event) == []
    assert life.state is BrokerState.SHUTTING_DOWN


def test_a_broker_that_is_not_registered_any_more_need_not_ask_to_stop():
    life = Life().run()
    life.happens(ShutDown(True, 30.0))
    life.ends(ControllerRefused(ErrorCode.STALE_BROKER_EPOCH))
    assert life.state is BrokerState.SHUTTING_DOWN
