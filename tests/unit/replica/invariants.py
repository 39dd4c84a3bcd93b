"""What must hold after every step, whatever happened (the numbers are those of the rules of the protocol).

I1 a leader has everything committed; I2 so has every running member of ISR and ELR; I3 the leader's maximal ISR holds whoever the
controller believes in sync; I4 logs agree below the lower of two high watermarks; I5 who is fenced is in no ISR; I6 ISR and ELR are
replicas, apart from each other, and an ISR that is large enough leaves no ELR; I7 what was acknowledged to acks=all is in the
leader's log; I8 what was read stays where it was read; I10 while nobody could lead, the last leader is known; I11 a leader fetches
from nobody.

Always true: "committed" is what some leader's high watermark has passed, and is remembered here; where the topic allows loss
(unclean elections) only what concerns each replica by itself is checked.
"""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.metadata.image import PartitionImage
from strandline.replica.partition import Partition

from .broker import Process, records_of
from .cluster import Cluster

Record = tuple[int, str, int]


class Contents:
    """The records of one log, read again only where they changed."""

    def __init__(self) -> None:
        self._partition: Partition | None = None
        self._by_offset: dict[int, Record] = {}
        self._end = 0

    def forget(self) -> None:
        self._partition = None

    def of(self, partition: Partition) -> dict[int, Record]:
        log = partition.log
        if partition is not self._partition or log.log_end_offset < self._end:
            self._partition, self._by_offset = partition, {}
            self._end = log.log_start_offset
        if log.log_end_offset > self._end:
            for record in records_of(log, max(self._end, log.log_start_offset)):
                self._by_offset[record[0]] = record
            self._end = log.log_end_offset
        return self._by_offset


class Watch:
    def __init__(self, cluster: Cluster, *, allows_loss: bool = False) -> None:
        self.cluster = cluster
        self.allows_loss = allows_loss
        self.committed: dict[int, Record] = {}
        self._contents = {broker_id: Contents() for broker_id in cluster.hosts}
        self._watermarks: dict[Partition, tuple[int, int]] = {}
        cluster.on_truncation = lambda process: self._contents[process.node_id].forget()

    @property
    def true_high_watermark(self) -> int:
        return max(self.committed, default=-1) + 1

    def check(self) -> None:
        cluster = self.cluster
        hosting = [(process, process.partition) for process in cluster.running if process.partition is not None]
        for process, partition in hosting:
            self._alone(process, partition)
        state = cluster.controller.partition
        self._metadata(state)
        if self.allows_loss:
            return
        for process, partition in hosting:
            if partition.leads:
                self._commit(process, partition)
        for process, partition in hosting:
            self._below_watermark(process, partition)
            if process.node_id in (*state.isr, *state.elr):
                self._complete(process, partition, "I2")
        leader = cluster.leader
        if leader is not None:
            assert leader.leadership is not None
            process = cluster.process(state.leader)
            self._complete(process, leader, "I1")
            isr = leader.leadership.isr
            if len(isr.isr) >= leader.min_isr:
                missing = {*state.isr, *state.elr} - {*isr.maximal}
                assert not missing, f"I3: {missing} may be in sync and does not count: {isr.maximal} of {state}"
            assert isr.pending is not None or set(isr.maximal) == set(isr.isr), f"I3: {isr.maximal} without a proposal"
            self._acknowledged(leader)

    def _alone(self, process: Process, partition: Partition) -> None:
        partition.check_invariants()
        partition.log.check_invariants()
        if partition.leads:
            assert partition.fetch_position(1) is None, "I11: a leader fetches"
            before = self._watermarks.get(partition, (-1, 0))
            if before[0] == partition.leader_epoch:
                assert partition.high_watermark >= before[1], "A1: a leader's watermark fell"
            self._watermarks[partition] = partition.leader_epoch, partition.high_watermark

    def _metadata(self, state: PartitionImage) -> None:
        image, policy = self.cluster.controller.image, self.cluster.controller.policy
        fenced = {broker.broker_id for broker in image.brokers.values() if broker.fenced}
        if policy.elr_enabled or len(state.isr) > 1:
            assert not fenced & {*state.isr}, f"I5: {fenced} fenced, in the ISR {state.isr}"
        assert {*state.isr, *state.elr} <= {*state.replicas}, f"I6: {state}"
        assert not {*state.isr} & {*state.elr}, f"I6: {state}"
        if len(state.isr) >= min(policy.default_min_isr, len(state.replicas)):
            assert not state.elr, f"I6: {state}"
        if policy.elr_enabled and not state.isr and not state.elr:
            assert len(state.last_known_elr) == 1, f"I10: {state}"

    def _commit(self, process: Process, partition: Partition) -> None:
        """What this leader calls committed is so from now on."""
        end = self.true_high_watermark
        if partition.high_watermark > end:
            contents = self._contents[process.node_id].of(partition)
            for offset in range(end, partition.high_watermark):
                self.committed[offset] = contents[offset]

    def _below_watermark(self, process: Process, partition: Partition) -> None:
        """I4, I8: each watermark lies within what is committed, and below it every log is the same."""
        assert partition.high_watermark <= self.true_high_watermark, (
            f"I4: {process.node_id} believes {partition.high_watermark} committed of {self.true_high_watermark}"
        )
        self._agrees(process, partition, partition.high_watermark, "I4")

    def _complete(self, process: Process, partition: Partition, rule: str) -> None:
        end = self.true_high_watermark
        assert partition.log.log_end_offset >= end, (
            f"{rule}: {process.node_id} ends at {partition.log.log_end_offset}, {end} are committed"
        )
        self._agrees(process, partition, end, rule)

    def _agrees(self, process: Process, partition: Partition, end: int, rule: str) -> None:
        contents = self._contents[process.node_id].of(partition)
        for offset in range(partition.log.log_start_offset, end):
            assert contents[offset] == self.committed[offset], (
                f"{rule}: {process.node_id} has {contents[offset]}, committed is {self.committed[offset]}"
            )

    def _acknowledged(self, leader: Partition) -> None:
        for written in self.cluster.written.values():
            if written.acks == -1 and written.code is ErrorCode.NONE and written.offset >= leader.log.log_start_offset:
                record = self.committed.get(written.offset)
                assert record is not None, f"I7: {written} is not committed"
                assert record[1] == written.value, f"I7: {written}, but {record}"

    def read(self, broker_id: int) -> None:
        """I8: a consumer reads there, and reads nothing else than anybody before."""
        for offset, value, epoch in self.cluster.consume(broker_id):
            before = self.cluster.consumed.setdefault(offset, (value, epoch))
            assert before == (value, epoch), f"I8: offset {offset} was {before} and is {(value, epoch)}"
