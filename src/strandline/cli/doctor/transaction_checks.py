"""The checks of `doctor` in transactions: those that their coordinator should have ended, those that no coordinator will end,
and markers that leaders refuse.

Always true: a transaction within its timeout is never a finding; one that could not be looked for is said to be so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from strandline.cli.doctor.checks import FAIL, OK, WARN, Finding
from strandline.cli.transactions import transaction_admin
from strandline.errors import KafkaError

if TYPE_CHECKING:
    from strandline.cli.transactions.transaction_admin import OpenTransaction
    from strandline.client.blocking import Admin
    from strandline.client.flow.transaction_descriptions import DescribedTransaction, TransactionListing
    from strandline.ids import TopicPartition

STATE_TOPIC = "__transaction_state"
UNFINISHED = ("Ongoing", "PrepareCommit", "PrepareAbort")
NO_TIMEOUT_MS = 2**31 - 1
"""Of two-phase commit: no coordinator ends it (TXN-Q4)."""
LATE_MS = 60_000
"""How long after its timeout: coordinators look every 10 s, and one that has just taken over counts anew."""
SILENT_MS = 15 * 60 * 1000
"""`transaction.max.timeout.ms` unless it is set."""
SHOWN_MAX = 5
REFUSED = re.compile(r"^strandline_transaction_markers_refused (\S+)$", re.MULTILINE)


def transactions(admin: Admin, partitions: Sequence[TopicPartition], now_ms: int) -> Iterator[Finding]:
    """How many transactional ids there are, and what does not end. `partitions` are all that can be asked."""
    try:
        listed = admin.list_transactions()
        unfinished = [listing.transactional_id for listing in listed if listing.state in UNFINISHED]
        answers = admin.describe_transactions(unfinished) if unfinished else {}
    except KafkaError as error:
        advice = "are all brokers healthy that coordinate transactions?"
        yield Finding(WARN, "transactions", f"cannot be listed: {error.message}", advice)
        return
    yield Finding(OK, "transactions", _summary(listed))
    described = [answer for _, answer in sorted(answers.items()) if not isinstance(answer, KafkaError)]
    yield from late([each for each in described if _is_late(each, now_ms)], now_ms)
    yield from undecided([each for each in described if _is_undecided(each, now_ms)], now_ms)
    try:
        found = transaction_admin.find_hanging(admin, partitions, None, silent_for_ms=SILENT_MS, now_ms=now_ms)
    except KafkaError as error:
        advice = "`strandline transactions find-hanging --topic` asks those of one topic"
        yield Finding(WARN, "transactions", f"those that hang cannot be searched: {error.message}", advice)
    else:
        yield from hanging(found, now_ms)


def _summary(listed: Iterable[TransactionListing]) -> str:
    states = Counter(listing.state for listing in listed)
    if not states:
        return "none"
    return f"{states.total()}: {', '.join(f'{count} {state}' for state, count in sorted(states.items()))}"


def _is_late(described: DescribedTransaction, now_ms: int) -> bool:
    if described.state not in UNFINISHED or described.start_ms is None:
        return False
    age_ms = now_ms - described.start_ms
    if described.timeout_ms == NO_TIMEOUT_MS:  # an open one is never late
        return described.state != "Ongoing" and age_ms > SILENT_MS + LATE_MS
    return age_ms > described.timeout_ms + LATE_MS


def _is_undecided(described: DescribedTransaction, now_ms: int) -> bool:
    return (
        described.state == "Ongoing"
        and described.timeout_ms == NO_TIMEOUT_MS
        and described.start_ms is not None
        and now_ms - described.start_ms > SILENT_MS
    )


def late(found: list[DescribedTransaction], now_ms: int) -> Iterator[Finding]:
    """Coordinators should have ended these (TXN-T28, TXN-T33)."""
    for each in found[:SHOWN_MAX]:
        age_s = (now_ms - (each.start_ms or now_ms)) // 1000
        name = each.transactional_id
        if each.state == "Ongoing":
            text = f"{name} is open for {age_s} s, its timeout is {each.timeout_ms // 1000} s"
            advice = (
                f"broker {each.coordinator_id} should have aborted it: its log says why not; "
                f"`strandline transactions force-terminate {name}` aborts it"
            )
        else:
            text = f"{name} is {each.state} and began {age_s} s ago; no marker yet at {_places(each.partitions)}"
            advice = (
                "its end goes on as soon as these partitions have a leader and min.insync.replicas; "
                f"if they have, restart broker {each.coordinator_id}: the next coordinator sends the markers again"
            )
        yield Finding(WARN, "transactions", text, advice)
    yield from _more(len(found), "do not end", "strandline transactions describe")


def undecided(found: list[DescribedTransaction], now_ms: int) -> Iterator[Finding]:
    """Of two-phase commit: the application that began these ends them, or nobody does (TXN-Q4)."""
    for each in found[:SHOWN_MAX]:
        name, minutes = each.transactional_id, (now_ms - (each.start_ms or now_ms)) // 60_000
        text = (
            f"{name} is open for {minutes} min and has no timeout (two-phase commit); consumers with read_committed stop at "
            f"{_places(each.partitions)}"
        )
        advice = f"its application ends it; if that is gone, `strandline transactions force-terminate {name}` aborts it"
        yield Finding(WARN, "transactions", text, advice)
    yield from _more(len(found), "of two-phase commit are open", "strandline transactions describe")


def hanging(found: list[OpenTransaction], now_ms: int) -> Iterator[Finding]:
    """No coordinator will end these: readers of committed records stop before them (TXN-T39)."""
    for (topic, index), producer in found[:SHOWN_MAX]:
        minutes = (now_ms - producer.last_timestamp) // 60_000
        start = producer.current_txn_start_offset
        text = (
            f"{topic}-{index}: the transaction of producer {producer.producer_id} at offset {start} hangs, silent for "
            f"{minutes} min; consumers with read_committed stop there"
        )
        advice = f"`strandline transactions abort {topic}-{index} --start-offset {start}` ends it"
        yield Finding(FAIL, "transactions", text, advice)
    yield from _more(len(found), "hang", "strandline transactions find-hanging")


def _more(count: int, what: str, command: str) -> Iterator[Finding]:
    if count > SHOWN_MAX:
        yield Finding(WARN, "transactions", f"{count - SHOWN_MAX} more {what}", f"`{command}` lists them")


def _places(partitions: Iterable[TopicPartition]) -> str:
    names = [f"{topic}-{index}" for topic, index in sorted(partitions)]
    shown = ", ".join(names[:SHOWN_MAX]) or "no partition that is left"
    return shown if len(names) <= SHOWN_MAX else f"{shown} and {len(names) - SHOWN_MAX} more"


def markers(metrics: Mapping[int, str]) -> Iterator[Finding]:
    """Transactions whose end a leader refuses. `metrics` are those of each node."""
    for node_id, text in metrics.items():
        count = refused(text)
        if count:
            what = "a transaction" if count == 1 else f"{count} transactions"
            found = f"broker {node_id} cannot end {what}: leaders refuse the markers"
            advice = (
                "`strandline timeline` names them (marker refused); restart the broker: the coordinator that takes over "
                "sends them with a newer epoch"
            )
            yield Finding(FAIL, "transactions", found, advice)


def refused(metrics: str) -> int:
    """The number of transactional ids whose markers are refused."""
    return round(sum(float(value) for value in REFUSED.findall(metrics)))
