"""A history of clients, written by hand: what each sent and read, and with what result."""

from __future__ import annotations

from strandline.histories.judges import clients
from strandline.histories.record_history import RecordHistory, RecordPosition

T = "t"
KEY = (T, 0)


def at(offset: int, partition: int = 0) -> RecordPosition:
    return RecordPosition(T, partition, offset)


class RecordedHistory:
    """One partition unless said otherwise; each event is a second later than the one before."""

    def __init__(self) -> None:
        self.now = 0.0
        self.committed = 1_000
        self.history = RecordHistory(lambda: self.now, lambda topic, partition: self.committed)
        self.history.note_begin("reader", {KEY: 0})

    def send(
        self, value: str, offset: int | None = None, *, who: str = "once", by_all: bool = True, idempotent: bool = True
    ) -> RecordedHistory:
        """And have it acknowledged at this offset, if there is one."""
        self.now += 1
        data = value.encode()
        self.history.note_sent(who, data, T, 0, by_all=by_all, idempotent=idempotent)
        if offset is not None:
            self.history.note_acknowledged(data, at(offset))
        return self

    def together(self, *values: str, who: str = "once") -> RecordedHistory:
        """Sent in one go, nobody knows with what end."""
        self.now += 1
        for value in values:
            self.history.note_sent(who, value.encode(), T, 0, by_all=True, idempotent=True)
        return self

    def poll(self, **records: int) -> RecordedHistory:
        """Values, and at which offset each was read."""
        self.now += 1
        self.history.note_poll("reader", [(at(offset), value.encode()) for value, offset in records.items()])
        return self

    def end(
        self, offset: int, *, who: str = "reader", since: float | None = None, leader_epoch: int = 0
    ) -> RecordedHistory:
        """A client asked, at that time or just now, where the partition ends."""
        self.now += 1
        self.history.note_end(who, T, 0, offset, leader_epoch, invoked_at=self.now if since is None else since)
        return self

    def stored(self, *values: str, first: int = 0) -> RecordedHistory:
        """What is there in the end."""
        for offset, value in enumerate(values, first):
            self.history.note_stored(at(offset), value.encode())
        return self

    def found(self) -> set[str]:
        """The anomalies."""
        return {problem.property for problem in clients.judge(self.history)}
