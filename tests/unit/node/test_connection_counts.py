"""Who is let in, and who makes room (SEC-L5, SEC-Q9, SEC-T14)."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="unused-ignore"

from __future__ import annotations

from strandline.node.connection_counts import CLUSTER_CONNECTIONS_MIN, ConnectionCounts
from strandline.node.limited_log import EVERY_S, LimitedLog


class Visitor:
    def __init__(self, peer: str = "a", last_active: float = 0.0) -> None:
        self.peer = peer
        self.last_active = last_active
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def admit(counts: ConnectionCounts, guest: Visitor, *, of_cluster: bool = False, most: int = 3, per_ip: int = 9):
    return counts.admit(guest, of_cluster=of_cluster, max_connections=most, per_ip=per_ip)


def test_clients_are_limited_in_all_and_per_address() -> None:
    counts = ConnectionCounts()
    assert [admit(counts, Visitor("a"), per_ip=2) for _ in range(3)] == [None, None, "max.connections.per.ip"]
    last = Visitor("b")
    assert admit(counts, last, per_ip=2) is None
    assert admit(counts, Visitor("c"), per_ip=2) == "max.connections"
    counts.leave(last)
    counts.leave(last)
    assert admit(counts, Visitor("c"), per_ip=2) is None
    assert counts.refused == {"max.connections": 1, "max.connections.per.ip": 1}


def test_the_clusters_own_connections_do_not_count() -> None:
    counts = ConnectionCounts()
    own = [Visitor() for _ in range(20)]
    assert [admit(counts, one, of_cluster=True, most=1, per_ip=1) for one in own] == [None] * 20
    assert admit(counts, Visitor(), most=1, per_ip=1) is None
    assert admit(counts, Visitor(), most=1, per_ip=1) == "max.connections"
    assert len(counts) == 21
    for one in own:
        counts.leave(one)
    assert len(counts) == 1


def test_there_are_never_more_than_descriptors() -> None:
    counts = ConnectionCounts(2)
    guests = [Visitor() for _ in range(3)]
    assert [admit(counts, guest, most=99) for guest in guests] == [None, None, "open files"]


def test_one_of_the_clusters_own_takes_the_place_of_the_client_that_was_silent_for_longest() -> None:
    counts = ConnectionCounts(3)
    busy, silent, recent = (Visitor("a", at) for at in (9.0, 1.0, 5.0))
    for guest in (busy, silent, recent):
        assert admit(counts, guest, most=99) is None
    assert admit(counts, Visitor("broker"), of_cluster=True, most=99) is None
    assert [guest.is_aborted for guest in (busy, silent, recent)] == [False, True, False]
    assert (len(counts), counts.evicted) == (3, 1)
    counts.leave(silent)
    assert len(counts) == 3, "it left when it made room"


def test_strangers_on_the_clusters_port_do_not_push_all_clients_out() -> None:
    counts = ConnectionCounts(2 * CLUSTER_CONNECTIONS_MIN)
    clients = [Visitor("a") for _ in range(2 * CLUSTER_CONNECTIONS_MIN)]
    for client in clients:
        assert admit(counts, client, most=999, per_ip=999) is None
    outcomes = [admit(counts, Visitor("x"), of_cluster=True) for _ in range(500)]
    assert outcomes.count(None) == CLUSTER_CONNECTIONS_MIN
    assert sum(client.is_aborted for client in clients) == CLUSTER_CONNECTIONS_MIN


class Lines:
    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []

    def warning(self, event: str, **values: object) -> None:
        self.lines.append((event, values))


def test_a_line_that_strangers_cause_comes_once_in_a_while() -> None:
    lines = Lines()
    log = LimitedLog(lines)  # type: ignore[arg-type]
    for second in range(12):
        log.warning("too many", float(second), peer="a")
    log.warning("other", 3.0)
    assert lines.lines == [
        ("too many", {"peer": "a"}),
        ("too many", {"peer": "a", "left_out": int(EVERY_S) - 1}),
        ("other", {}),
    ]
