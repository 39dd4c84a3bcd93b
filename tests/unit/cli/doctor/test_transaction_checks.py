"""What doctor says of transactions."""

from __future__ import annotations

import pytest

from strandline.cli.doctor import transaction_checks
from strandline.cli.doctor.checks import FAIL, OK, WARN, Finding
from strandline.cli.doctor.transaction_checks import LATE_MS, NO_TIMEOUT_MS, SILENT_MS, markers, refused
from strandline.errors import ErrorCode, KafkaError
from tests.unit.cli.transactions.in_memory_transactions import InMemoryTransactions

A, B = ("hello", 0), ("hello", 1)
NOW_MS = 10_000_000
TIMEOUT_MS = 60_000
"""Of every transactional id in memory."""


@pytest.fixture
def cluster() -> InMemoryTransactions:
    found = InMemoryTransactions()
    for key in (A, B):
        found.producers[key] = []
    return found


def found_in(cluster: InMemoryTransactions) -> list[Finding]:
    return list(transaction_checks.transactions(cluster, [A, B], NOW_MS))  # type: ignore[arg-type]


def test_transactional_ids_are_counted_in_one_line(cluster: InMemoryTransactions) -> None:
    assert found_in(cluster) == [(OK, "transactions", "none", "")]
    cluster.add("a", 1, "Empty")
    cluster.add("b", 2, "Ongoing", A, start_ms=NOW_MS - 10)
    cluster.add("c", 3, "Empty")
    assert found_in(cluster) == [(OK, "transactions", "3: 2 Empty, 1 Ongoing", "")]


def test_txn_t28_an_open_transaction_is_late_a_while_after_its_timeout(cluster: InMemoryTransactions) -> None:
    cluster.add("just", 1, "Ongoing", A, start_ms=NOW_MS - TIMEOUT_MS - LATE_MS)
    cluster.add("late", 2, "Ongoing", A, start_ms=NOW_MS - TIMEOUT_MS - LATE_MS - 1000)
    cluster.add("done", 3, "CompleteCommit", start_ms=1)
    _, late = found_in(cluster)
    assert (late.level, late.found) == (WARN, "late is open for 121 s, its timeout is 60 s")
    assert "`strandline transactions force-terminate late`" in late.advice


def test_txn_q4_one_of_two_phase_commit_that_nobody_ends_is_named(cluster: InMemoryTransactions) -> None:
    """It is never late, and never hangs: its coordinator knows it."""
    for name, start_ms in (("young", NOW_MS - SILENT_MS), ("old", NOW_MS - SILENT_MS - 60_000)):
        cluster.add(name, 2, "Ongoing", A, start_ms=start_ms)
        cluster.ids[name] = cluster.ids[name]._replace(timeout_ms=NO_TIMEOUT_MS)
    cluster.open(A, 2, 5, NOW_MS - SILENT_MS - 60_000)
    _, undecided = found_in(cluster)
    assert undecided.level == WARN
    assert undecided.found == (
        "old is open for 16 min and has no timeout (two-phase commit); consumers with read_committed stop at hello-0"
    )
    assert "`strandline transactions force-terminate old` aborts it" in undecided.advice


def test_txn_q4_one_of_two_phase_commit_whose_markers_do_not_arrive_is_late_like_any_other(
    cluster: InMemoryTransactions,
) -> None:
    for name, start_ms in (("ending", NOW_MS - SILENT_MS), ("stuck", NOW_MS - SILENT_MS - LATE_MS - 1000)):
        cluster.add(name, 2, "PrepareCommit", A, start_ms=start_ms)
        cluster.ids[name] = cluster.ids[name]._replace(timeout_ms=NO_TIMEOUT_MS)
    _, stuck = found_in(cluster)
    assert stuck.found == "stuck is PrepareCommit and began 961 s ago; no marker yet at hello-0"


def test_txn_t33_one_whose_markers_do_not_arrive_says_where(cluster: InMemoryTransactions) -> None:
    cluster.add("pay", 2, "PrepareCommit", B, A, start_ms=NOW_MS - 200_000)
    _, late = found_in(cluster)
    expected = "pay is PrepareCommit and began 200 s ago; no marker yet at hello-0, hello-1"
    assert (late.level, late.found) == (WARN, expected)
    assert "restart broker 1" in late.advice


def test_one_that_has_ended_since_it_was_listed_is_no_finding(
    cluster: InMemoryTransactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.add("gone", 1, "Ongoing", A, start_ms=0)
    gone = KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    monkeypatch.setattr(cluster, "describe_transactions", lambda names: dict.fromkeys(names, gone))
    assert [finding.level for finding in found_in(cluster)] == [OK]


def test_txn_t39_one_that_hangs_is_a_failure_and_can_be_aborted(cluster: InMemoryTransactions) -> None:
    cluster.open(A, 7, 5, NOW_MS - SILENT_MS)
    cluster.open(B, 7, 5, NOW_MS - SILENT_MS - 60_000)
    _, hanging = found_in(cluster)
    assert hanging.level == FAIL
    assert hanging.found.startswith("hello-1: the transaction of producer 7 at offset 5 hangs, silent for 16 min")
    assert hanging.advice == "`strandline transactions abort hello-1 --start-offset 5` ends it"


def test_of_many_the_first_are_shown(cluster: InMemoryTransactions) -> None:
    for number in range(7):
        cluster.add(f"t{number}", number, "Ongoing", A, start_ms=0)
        cluster.open(A, 100 + number, number, 0)
    _, *others = found_in(cluster)
    assert len(others) == 12
    assert (others[5].found, others[5].advice) == ("2 more do not end", "`strandline transactions describe` lists them")
    assert (others[11].found, others[11].level) == ("2 more hang", WARN)
    cluster.ids = {"t0": cluster.ids["t0"]._replace(state="PrepareAbort", partitions=tuple(("p", n) for n in range(8)))}
    assert "p-0, p-1, p-2, p-3, p-4 and 3 more" in found_in(cluster)[1].found


def test_what_can_not_be_asked_is_a_finding(cluster: InMemoryTransactions, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.producers.clear()
    summary, unsearched = found_in(cluster)
    assert (summary.level, unsearched.level) == (OK, WARN)
    assert unsearched.found == "those that hang cannot be searched: no such partition"

    def loading(**filters: object) -> None:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "still loading")

    monkeypatch.setattr(cluster, "list_transactions", loading)
    [finding] = found_in(cluster)
    assert (finding.level, finding.found) == (WARN, "cannot be listed: still loading")


def test_txn_t33_refused_markers_are_a_failure() -> None:
    name = "strandline_transaction_markers_refused"
    assert refused(f"# HELP {name} Ids.\n# TYPE {name} gauge\n{name} 2.0\n") == 2
    [finding] = markers({1: f"{name} 0.0\n", 2: f"{name} 1.0\n", 3: ""})
    assert (finding.level, finding.found) == (FAIL, "broker 2 cannot end a transaction: leaders refuse the markers")
    [finding] = markers({2: f"{name} 3.0\n"})
    assert "3 transactions" in finding.found
