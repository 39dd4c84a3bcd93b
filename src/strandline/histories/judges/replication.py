"""Replication: what is committed is one log, leaders and candidates have it, and no leader commits too early (I1 to I11)."""

from __future__ import annotations

from strandline.histories.judges.images import MIN_ISR
from strandline.histories.replica_sight import RECOVERING, Key, Loss, Replica, ReplicaChecker, ReplicaSight
from strandline.histories.sight import Violation
from strandline.metadata.image import TOPIC_RESOURCE
from strandline.metadata.records import NO_LEADER

FLUSH = "flush.messages"


class OneCommittedLog(ReplicaChecker):
    """I4, I8: each offset below anybody's high watermark has one batch, on every replica, for ever."""

    def __init__(self) -> None:
        self._compared: dict[tuple[int, Key], tuple[int, int]] = {}
        """By replica: in which era, up to which offset."""

    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        committed = sight.committed[key]
        if before is not None and after.log_end_offset < before.log_end_offset:
            sight.forget_position(node_id, key)
        era, offset = self._compared.get((node_id, key), (0, 0))
        if before is None or era != committed.era:
            offset = 0
        offset = max(min(offset, after.log_end_offset), after.log_start_offset)
        if after.high_watermark > offset and self._counts(sight, key, after):
            for batch in sight.batches(node_id, key, offset, after.high_watermark):
                known = committed.batches.setdefault(batch.base_offset, batch)
                if known != batch:
                    raise Violation(f"has {batch} committed, and another replica {known}")
                if batch.last_offset >= after.high_watermark and not committed.era:
                    raise Violation(f"the high watermark {after.high_watermark} lies within {batch}")
            offset = after.high_watermark
            committed.end_offset = max(committed.end_offset, offset)
        self._compared[node_id, key] = (committed.era, offset)

    @staticmethod
    def _counts(sight: ReplicaSight, key: Key, after: Replica) -> bool:
        """After a loss, whoever has not cut its log yet goes on believing what was."""
        return not sight.committed[key].era or (after.leads and after.leader_epoch >= sight.lost_in_epoch(key))


class LeaderCompleteness(ReplicaChecker):
    """I1: who becomes leader has all that was committed; after an unclean election, all but what the faults may take."""

    def __init__(self, may_lose: Loss = Loss.NOTHING) -> None:
        self._may_lose = may_lose

    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if not after.leads or (
            before is not None and (before.leads, before.leader_epoch) == (True, after.leader_epoch)
        ):
            return
        state = sight.state(key)
        if state is None or state.leader_epoch != after.leader_epoch:
            return  # deposed before it knew that it led
        committed = sight.committed[key]
        matching = self._matching(sight, node_id, key, after)
        if matching >= committed.end_offset:
            return
        text = f"leads in epoch {after.leader_epoch} with {matching} of the {committed.end_offset} that are committed"
        if state.leader_recovery_state != RECOVERING:
            raise Violation(f"{text}: {state}")
        is_synced = sight.image.config(TOPIC_RESOURCE, sight.image.topics_by_id[key[0]].name).get(FLUSH) == "1"
        if self._may_lose is Loss.NOTHING or (self._may_lose is Loss.UNSYNCED and is_synced):
            raise Violation(f"{text}, after an unclean election: {state}")
        sight.lose(key, matching, after.leader_epoch)

    @staticmethod
    def _matching(sight: ReplicaSight, node_id: int, key: Key, after: Replica) -> int:
        """Up to which offset its log is the committed one."""
        committed = sight.committed[key]
        sight.forget_position(node_id, key)
        here = {batch.base_offset: batch for batch in sight.batches(node_id, key, 0, committed.end_offset)}
        for base_offset, batch in sorted(committed.batches.items()):
            if base_offset >= after.log_start_offset and here.get(base_offset) != batch:
                return base_offset
        return committed.end_offset


class CandidateCompleteness(ReplicaChecker):
    """I2: every running member of ISR and ELR, as the controller has them, has all that is committed."""

    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if before is not None and after.log_end_offset >= before.log_end_offset and not after.leads:
            return
        state, end_offset = sight.state(key), sight.committed[key].end_offset
        if state is None or state.leader_recovery_state == RECOVERING:
            return
        for candidate in {*state.isr, *state.elr} & {node_id, *(state.isr if after.leads else ())}:
            replica = sight.replicas.get((candidate, key))
            if (
                replica is not None
                and replica.is_online
                and replica.log_end_offset < end_offset
                and sight.is_current(candidate)
            ):
                raise Violation(f"n{candidate} ends at {replica.log_end_offset} of {end_offset} committed: {state}")


class MaximalIsr(ReplicaChecker):
    """I3: whom the controller may elect counts with the leader, whatever became of its last wish."""

    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if not after.leads:
            return
        if not after.is_pending and set(after.maximal) != set(after.isr):
            raise Violation(f"maximal ISR {after.maximal} without a wish, and the ISR is {after.isr}")
        state = sight.state(key)
        if state is None or (state.leader, state.leader_epoch) != (node_id, after.leader_epoch):
            return
        if len(after.isr) >= min_isr(sight, key) and not {*state.isr, *state.elr} <= set(after.maximal):
            raise Violation(f"maximal ISR {after.maximal}, and the controller has {state}")


class HighWatermark(ReplicaChecker):
    """It moves back only where the log was cut, never passes what the node vouches for, and waits for enough in sync (A2)."""

    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        if not after.log_start_offset <= after.high_watermark <= after.local_end <= after.log_end_offset:
            raise Violation(f"{after}")
        if before is None:
            return
        if after.high_watermark < before.high_watermark:
            if after.leads and before.leader_epoch == after.leader_epoch:
                raise Violation(f"the high watermark of epoch {after.leader_epoch} moved back: {before}, {after}")
            if not sight.committed[key].era:
                raise Violation(f"what was committed is cut: {before}, {after}")
        elif after.high_watermark > before.high_watermark and before.leads and after.leads:
            enough = min_isr(sight, key)
            if len(before.isr) < enough and len(after.isr) < enough:
                raise Violation(f"commits to {after.high_watermark} with {after.isr} in sync")


class OneFetcher(ReplicaChecker):
    """I11: a follower is fetched from its leader and from nobody else; what is led here, or has no leader, from nobody."""

    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        follows = not after.leads and after.leader != NO_LEADER and after.is_online
        if after.fetched_from != (after.leader if follows else None) and not sight.is_closing(node_id):
            raise Violation(f"is fetched from {after.fetched_from}: {after}")


def min_isr(sight: ReplicaSight, key: Key) -> int:
    topic = sight.image.topics_by_id.get(key[0])
    if topic is None:
        return 1
    wanted = int(sight.image.config(TOPIC_RESOURCE, topic.name).get(MIN_ISR, 1))
    return min(wanted, len(topic.partitions[key[1]].replicas))


def replica_checkers(may_lose: Loss) -> list[ReplicaChecker]:
    return [
        LeaderCompleteness(may_lose),
        OneCommittedLog(),
        CandidateCompleteness(),
        MaximalIsr(),
        HighWatermark(),
        OneFetcher(),
    ]
