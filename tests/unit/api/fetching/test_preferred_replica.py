"""Which replica a consumer should read from (rule A16)."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api.fetching.preferred_replica import preferred_read_replica
from strandline.config.broker_replication import RACK_AWARE_SELECTOR
from strandline.metadata import records as r

from ..conftest import registration
from ..leader import Leader, offsets
from ..leader import part as position
from ..test_fetch import ask, delivered, handled, part, read

NEAR, FAR = "near", "far"


@pytest.fixture
def leader(make_broker):
    """Leads in the far rack; 2 and 3 are near, 4 is far; everybody has offsets 0 to 4 and may serve from 0 on."""
    return at_a_distance(make_broker, **{"replica.selector.class": RACK_AWARE_SELECTOR, "broker.rack": FAR})


def at_a_distance(make_broker, **settings):
    broker = make_broker(**settings)
    racks = {1: FAR, 2: NEAR, 3: NEAR, 4: FAR}
    broker.commit([registration(node_id, rack=rack) for node_id, rack in racks.items()])
    broker.create("t", (1, 2, 3, 4))
    for _ in range(5):
        broker.append("t", 1000)
    for replica in (2, 3, 4):
        broker.follow(replica, 5)
    return broker


def preferred(broker, rack=NEAR, offset=0):
    return preferred_read_replica(broker.parts, broker.parts.hosted.by_name["t", 0], rack, offset)


async def test_one_in_the_consumers_rack(leader):
    assert preferred(leader) in (2, 3)


@pytest.mark.parametrize("rack", ["", FAR, "elsewhere"])
async def test_who_stays_with_the_leader(leader, rack):
    """Who says no rack, who is in the leader's own, and who is where no replica is."""
    assert preferred(leader, rack) is None


async def test_nobody_is_sent_elsewhere_unless_that_is_configured(make_broker):
    assert preferred(at_a_distance(make_broker, **{"broker.rack": FAR})) is None


async def test_a_leader_without_a_rack_sends_to_one_that_has_it(make_broker):
    broker = at_a_distance(make_broker, **{"replica.selector.class": RACK_AWARE_SELECTOR})
    assert preferred(broker) in (2, 3)


async def test_a16_only_replicas_in_sync(leader):
    leader.change(isr=(1, 3, 4))
    assert preferred(leader) == 3
    leader.change(isr=(1, 4))
    assert preferred(leader) is None


async def test_a16_only_replicas_that_have_the_offset(leader):
    leader.append("t", 1000)
    leader.follow(3, 6)
    assert preferred(leader, offset=6) == 3
    assert preferred(leader, offset=7) is None
    leader.follow(3, 6, log_start=2)
    assert preferred(leader, offset=1) == 2
    leader.follow(2, 5, log_start=2)
    assert preferred(leader, offset=1) is None


async def test_a16_not_one_that_has_not_fetched_from_this_leader(make_broker):
    broker = make_broker(**{"replica.selector.class": RACK_AWARE_SELECTOR, "broker.rack": FAR})
    broker.commit([registration(2, rack=NEAR)])
    broker.create("t", (1, 2))
    assert preferred(broker) is None


async def test_only_brokers_that_are_alive(leader):
    leader.commit([r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=1)])
    assert preferred(leader) == 2


async def test_of_several_the_one_that_has_most_and_then_the_one_that_was_level_last(leader):
    leader.surroundings.time += 1
    leader.follow(2, 5)
    assert preferred(leader) == 2
    leader.append("t", 1000)
    leader.surroundings.time += 1
    leader.follow(3, 6)
    assert preferred(leader) == 3


async def test_a16_only_the_leader_sends_elsewhere(leader):
    leader.change(leader=4)
    assert preferred(leader) is None


# In a Fetch


async def test_a_consumer_is_told_at_once_and_gets_no_records(leader):
    [answer] = ask(leader, 12, part(0), rack_id=NEAR, max_wait_ms=60_000)
    assert answer.preferred_read_replica in (2, 3)
    assert (answer.error_code, answer.records, answer.high_watermark) == (0, b"", 5)


async def test_in_a_session_it_is_told_each_time(leader):
    first = read(12, handled(leader, 12, part(0), rack_id=NEAR, session_epoch=0))
    again = handled(leader, 12, rack_id=NEAR, session_id=first.session_id, session_epoch=1, max_wait_ms=60_000)
    [topic] = read(12, again).responses
    assert topic.partitions[0].preferred_read_replica in (2, 3)


async def test_a_consumer_that_knows_no_racks_stays(leader):
    [answer] = ask(leader, 10, part(0))
    assert answer.records


async def test_a16_a_follower_serves_consumers_below_its_own_high_watermark(leader):
    partition = leader.parts.hosted.by_name["t", 0]
    leader.append("t", 1000)
    leader.change(leader=4)
    assert (partition.high_watermark, partition.log.log_end_offset) == (5, 6)
    [answer] = ask(leader, 12, part(0, current_leader_epoch=1), rack_id=FAR)
    assert answer.error_code == 0
    assert offsets(answer) == [0, 1, 2, 3, 4]
    waiting = delivered(handled(leader, 12, part(5), rack_id=FAR, max_wait_ms=60_000))
    assert not waiting


async def test_before_racks_a_follower_refuses_consumers(leader):
    leader.change(leader=4)
    [answer] = ask(leader, 10, part(0))
    assert answer.error_code == 6


def test_a16_a_replica_is_never_sent_elsewhere():
    leader = Leader()
    leader.append(1)
    asked = leader.fetch(position(0))
    assert asked.answer.preferred_read_replica == -1
