"""Any puts and deletes, any segments, any moments of cleaning: whoever reads learns the last value of each key, from any offset."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strandline.log.compaction.job import CleanJob
from strandline.log.compaction.planning import plan
from strandline.log.compaction.swapping import swap
from strandline.log.log import Log
from strandline.node.log_effects import perform
from strandline.records.compression import CompressionType

from ..conftest import NOW, PoweredLogDir
from .cleaning import COMPACT, put, records, run_job

RETENTION_MS = 100
KEYS = st.sampled_from(["a", "b", "c", "d", "e" * 70])


class CompactedLog(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = PoweredLogDir(5)
        self.fields = {**COMPACT, "delete_retention_ms": RETENTION_MS, "segment_bytes": 400}
        self.log: Log = self.directory.open(**self.fields)
        self.now_ms = NOW
        self.written: dict[int, tuple[str, str | None]] = {}
        """By offset, all that was ever put."""
        self.clean_offset: int | None = None
        self.forgotten_below = 0
        """Tombstones below may be gone: a cleaning had set their horizon, and it passed."""
        self.horizons: list[tuple[int, int]] = []
        """When what lay below an offset had been cleaned may be forgotten, and the offset."""

    def teardown(self) -> None:
        self.directory.world.close()

    @rule(
        pairs=st.lists(st.tuples(KEYS, st.one_of(st.none(), st.text("xyz", max_size=30))), min_size=1, max_size=6),
        codec=st.sampled_from([CompressionType.NONE, CompressionType.NONE, CompressionType.LZ4]),
    )
    def put(self, pairs: list[tuple[str | None, str | None]], codec: CompressionType) -> None:
        base_offset = put(self.log, pairs, timestamp=self.now_ms, codec=codec, now_ms=self.now_ms)
        for i, (key, value) in enumerate(pairs):
            assert key is not None
            self.written[base_offset + i] = (key, value)

    @rule(segment_bytes=st.integers(100, 2000))
    def resize(self, segment_bytes: int) -> None:
        self.fields["segment_bytes"] = segment_bytes
        self.reopen(is_clean=True)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(milliseconds=st.integers(1, 2 * RETENTION_MS))
    def wait(self, milliseconds: int) -> None:
        self.now_ms += milliseconds

    @rule(entries_max=st.integers(1, 20), stable=st.floats(0, 1), is_read=st.booleans(), is_rolled=st.booleans())
    def clean(self, entries_max: int, stable: float, is_read: bool, is_rolled: bool) -> None:
        if is_rolled:
            self.log.roll(self.now_ms)
        made = plan(
            self.log,
            self.clean_offset,
            int(self.log.log_end_offset * stable + 0.5),
            self.now_ms,
            offset_map_entries_max=entries_max,
        )
        if made.job is None:
            return
        cleaned = run_job(self.log, made.job)
        self.forgotten_below = max([self.forgotten_below, *(at for ms, at in self.horizons if ms <= self.now_ms)])
        self.horizons.append((self.now_ms + RETENTION_MS, cleaned.end_offset))
        if is_read:
            self.directory.world.run(self._swap_while_reading(made.job, cleaned))
        else:
            for path in self.directory.world.run(perform(swap(self.log, made.job, cleaned))):
                self.log.disk.remove(path)
        self.clean_offset = cleaned.end_offset
        self.is_as_clean_as_it_should_be(cleaned.end_offset)

    async def _swap_while_reading(self, job: CleanJob, cleaned: Any) -> None:
        swapping = asyncio.ensure_future(perform(swap(self.log, job, cleaned)))
        while not swapping.done():
            self.the_last_value_of_each_key_is_read_from_any_offset()
            await asyncio.sleep(0.0002)
        for path in await swapping:
            self.log.disk.remove(path)

    @precondition(lambda self: self.written)
    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.log.advance_start(int(self.log.log_end_offset * share))

    @rule(is_clean=st.booleans())
    def reopen(self, is_clean: bool) -> None:
        start, end = self.log.log_start_offset, self.log.log_end_offset
        if is_clean:
            self.log.close_clean()
        else:
            self.directory.flush(self.log)
            self.directory.power_loss()
        recovered = self.directory.recover(clean=is_clean, recovery_point=end, start=start, **self.fields)
        self.log = recovered.log
        assert recovered.truncated_bytes == 0
        assert (self.log.log_start_offset, self.log.log_end_offset) == (start, end)

    @invariant()
    def the_last_value_of_each_key_is_read_from_any_offset(self) -> None:
        start, end = self.log.log_start_offset, self.log.log_end_offset
        newest = {key: offset for offset, (key, _) in sorted(self.written.items())}
        for offset in {start, (start + end) // 2, max(end - 3, start)}:
            found = [one for one in records(self.log, offset) if one[0] >= offset]
            assert [at for at, _, _ in found] == sorted({at for at, _, _ in found})
            for at, key, value in found:
                assert self.written[at] == (key, value)
            seen = {at for at, _, _ in found}
            for at in newest.values():
                is_deleted = self.written[at][1] is None
                assert at < offset or at in seen or (is_deleted and at < self.forgotten_below)

    def is_as_clean_as_it_should_be(self, end_offset: int) -> None:
        """Below the end of a cleaning no key is there twice."""
        keys = [key for at, key, _ in records(self.log) if at < end_offset]
        assert len(keys) == len(set(keys))


CompactedLog.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestCompactedLog = CompactedLog.TestCase
