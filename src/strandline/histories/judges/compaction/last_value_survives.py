"""F1, last-value-survives: of each key the last acknowledged value is left, at the offset of its acknowledgement, on
every replica and for every reader; what was deleted does not come back (F3 to F5).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from strandline.histories.compaction.history import FoundRecord, KeyedHistory, KeyedSend

NAME = "last-value-survives"


def judge(
    history: KeyedHistory, who: str, kept: Sequence[FoundRecord], late: Container[bytes] = frozenset()
) -> Iterable[str]:
    """`kept` is all that `who` has, in the order of its offsets; `late` are keys whose tombstone it got too late to
    see."""
    acknowledged = {send.offset: send for send in history.sends if send.offset is not None}
    offsets = {send.value: send.offset for send in history.sends if send.value is not None}
    last: dict[bytes, FoundRecord] = {}
    for record in kept:
        send = acknowledged.get(record.offset)
        if send is not None and (send.key, send.value) != (record.key, record.value):
            yield f"{who} has {record}, where {send.value!r} was acknowledged"
        if record.value is not None and record.value not in offsets:
            yield f"{who} has {record}, which was never written"
        elif record.value is not None and offsets[record.value] not in (None, record.offset):
            yield f"{who} has {record}, which was acknowledged for {offsets[record.value]}"
        last[record.key] = record
    by_key: dict[bytes, list[KeyedSend]] = {}
    for send in history.sends:
        by_key.setdefault(send.key, []).append(send)
    for key, sends in by_key.items():
        newest = history.last_acknowledged(key)
        if newest is None or newest.offset is None:
            continue
        found = last.get(key)
        if found is not None and found.offset >= newest.offset:
            continue
        is_deleted = newest.value is None or any(send.value is None and send.offset is None for send in sends)
        if found is not None and newest.value is None:
            if key in late:
                continue
            yield f"{who} has {found} again, which was deleted at {newest.offset}"
        elif not is_deleted:
            yield f"{who} has {found} as the last of {key!r}, and {newest.value!r} was acknowledged at {newest.offset}"
