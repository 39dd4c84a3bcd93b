"""A18: only what was not flushed is lost: after a power loss a replica has all that was on its device, after a kill all
it had.

A follower that begins anew at its leader's log start (A8) drops all that it has. Nothing is lost if it has to do so
again: it is out of sync until it has fetched what follows.
"""

from __future__ import annotations

from strandline.histories.batches import inode_of
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation
from strandline.node.observation.replicas import ObservedReplica


class ReplicaFlushedSurvives(ReplicaJudge):
    def loaded(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ObservedReplica, after: ObservedReplica
    ) -> None:
        if before.is_offline or observed.is_rotten(node_id, key):
            return
        # A power loss leaves other files under the same names; a kill leaves the very same, page cache and all.
        is_cached = inode_of(before.log.segments[-1]) in [inode_of(segment) for segment in after.log.segments]
        expected = before.log.log_end_offset if is_cached else before.log.recovery_point
        state = observed.state(key)
        was_follower = not before.leads
        # The ISR of now, from which the controller takes a broker that is gone: it says nothing of one that led.
        is_out_of_sync = state is None or node_id not in state.isr
        began_anew = before.log.log_start_offset >= expected and was_follower and is_out_of_sync
        if after.log.log_end_offset < expected and (is_cached or not began_anew):
            how = "in the page cache" if is_cached else "on its device"
            raise Violation(f"comes back with {after.log.log_end_offset} of the {expected} that were {how}")
