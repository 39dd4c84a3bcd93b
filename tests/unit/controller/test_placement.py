"""Placement of replicas: none twice, leaders even, racks apart, a dead broker's load spread over all."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.controller.placement import place
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage

from .conftest import broker


@settings(max_examples=150, deadline=None)
@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9),
    fenced=st.sets(st.integers(0, 8)),
    partitions=st.integers(1, 40),
    factor=st.integers(1, 9),
    first=st.integers(0, 30),
    seed=st.integers(0, 5),
)
def test_what_holds_for_every_placement(
    racks: list[str | None], fenced: set[int], partitions: int, factor: int, first: int, seed: int
) -> None:
    brokers = {i: broker(i, rack=rack, fenced=i in fenced) for i, rack in enumerate(racks)}
    active = [i for i in brokers if i not in fenced]
    if not active or factor > len(brokers):
        with pytest.raises(KafkaError) as error:
            place(brokers.values(), partitions, factor, random.Random(seed), first)
        assert error.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        return
    placed = place(brokers.values(), partitions, factor, random.Random(seed), first)
    assert len(placed) == partitions
    leaders = Counter(replicas[0] for replicas in placed)
    assert set(leaders) <= set(active)
    assert max(leaders.values()) - min((leaders[i] for i in active), default=0) <= 1
    # Each of these brokers has a host of its own, which stands in for the rack.
    rack_of = {i: rack or f"host {i}" for i, rack in enumerate(racks)}
    active_racks = len({rack_of[i] for i in active})
    for replicas in placed:
        assert len(replicas) == len(set(replicas)) == factor
        held = [i for i in replicas if i in active]
        assert len(held) == min(factor, len(active))
        assert len({rack_of[i] for i in held}) == min(len(held), active_racks)


def test_the_load_of_a_dead_broker_goes_to_all_others() -> None:
    brokers = [broker(i) for i in range(6)]
    placed = place(brokers, 30, 3, random.Random(1))
    heirs = Counter(replicas[1] for replicas in placed if replicas[0] == 0)
    assert heirs == dict.fromkeys(range(1, 6), 1)
    assert set(Counter(i for replicas in placed for i in replicas).values()) == {15}


def test_added_partitions_go_on_where_the_others_would_have_ended() -> None:
    brokers = [broker(i) for i in range(4)]
    whole = place(brokers, 8, 2, random.Random(3))
    assert place(brokers, 5, 2, random.Random(3), first=3) == whole[3:]


def test_a_broker_on_its_way_out_gets_nothing() -> None:
    brokers = [broker(1), broker(2), broker(3, stopping=True)]
    assert all(set(replicas) == {1, 2} for replicas in place(brokers, 10, 2, random.Random(0)))
    with pytest.raises(KafkaError) as error:
        place(brokers, 1, 3, random.Random(0))
    assert error.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_the_same_chance_gives_the_same_placement() -> None:
    brokers = [broker(i, rack="abc"[i % 3]) for i in range(7)]
    assert place(brokers, 9, 3, random.Random(5)) == place(reversed(brokers), 9, 3, random.Random(5))


def hosts_of(placed: list[tuple[int, ...]], brokers: list[BrokerImage]) -> set[int]:
    """How many hosts the partitions are on."""
    host = {broker.broker_id: broker.endpoints[0].host for broker in brokers}
    return {len({host[i] for i in replicas}) for replicas in placed}


def test_nodes_of_one_machine_do_not_hold_the_same_partition() -> None:
    brokers = [broker(i, host=f"machine{i % 3}") for i in range(9)]
    placed = place(brokers, 27, 3, random.Random(1))
    assert hosts_of(placed, brokers) == {3}
    assert set(Counter(replicas[0] for replicas in placed).values()) == {3}


def test_within_a_rack_replicas_are_on_different_machines() -> None:
    brokers = [broker(i, rack="ab"[i % 2], host=f"machine{i % 4}") for i in range(8)]
    placed = place(brokers, 16, 4, random.Random(2))
    assert hosts_of(placed, brokers) == {4}
    assert all(len({brokers[i].rack for i in replicas}) == 2 for replicas in placed)


def test_one_machine_is_enough_for_all() -> None:
    brokers = [broker(i, host="here") for i in range(3)]
    assert all(sorted(replicas) == [0, 1, 2] for replicas in place(brokers, 6, 3, random.Random(3)))


def test_cordoned_log_dirs_get_nothing() -> None:
    first, second = Uuid(b"1" * 16), Uuid(b"2" * 16)
    half = replace(broker(1, log_dirs=(first, second)), cordoned_log_dirs=(first,))
    whole = replace(broker(2, log_dirs=(first, second)), cordoned_log_dirs=(second, first))
    assert place([half, whole], 3, 1, random.Random(0)) == [(1,)] * 3
