"""Requests on their way: one in a slot, found again by identity, tried again with longer pauses."""

from __future__ import annotations

import random
from math import inf

from strandline.raft.effects import Effect, SendRequest
from strandline.raft.events import Destination
from strandline.raft.messages import ApiVersionsRequest, RemoveVoterRequest
from strandline.raft.outbox import Outbox
from tests.unit.raft.cluster import address, key

SLOT = ("vote", 2)
TO = Destination(2, address(2))


def test_a_slot_is_busy_until_its_request_comes_to_an_end() -> None:
    outbox, effects = Outbox(0.02, random.Random(1)), list[Effect]()
    request = RemoveVoterRequest(key(2))
    outbox.send(effects, SLOT, TO, request)
    assert effects == [SendRequest(TO, request)]
    assert outbox.ready_at(SLOT) == inf
    assert outbox.settle(RemoveVoterRequest(key(2))) is None, "an equal request is another one"
    assert outbox.settle(request) == SLOT
    assert outbox.settle(request) is None
    assert outbox.ready_at(SLOT) == -inf


def test_pauses_double_up_to_ten_times_and_end_with_a_success() -> None:
    outbox = Outbox(0.02, random.Random(1))
    pauses = []
    for _ in range(8):
        outbox.failed(SLOT, 100.0)
        pauses.append(outbox.ready_at(SLOT) - 100.0)
    assert 0.01 <= pauses[0] <= 0.02
    assert 0.1 <= pauses[-1] <= 0.2
    outbox.succeeded(SLOT)
    outbox.failed(SLOT, 100.0)
    assert outbox.ready_at(SLOT) <= 100.02


def test_a_voter_may_be_gone_for_days() -> None:
    """Two to the power of its failures is no number any more."""
    outbox = Outbox(0.02, random.Random(1))
    for _ in range(2000):
        outbox.failed(SLOT, 100.0)
    assert 100.1 <= outbox.ready_at(SLOT) <= 100.2


def test_what_was_asked_in_the_last_state_finds_nothing() -> None:
    outbox, effects = Outbox(0.02, random.Random(1)), list[Effect]()
    request = ApiVersionsRequest()
    outbox.send(effects, SLOT, TO, request)
    outbox.clear()
    assert outbox.settle(request) is None
