"""Whether a topic can lose records that were acknowledged with acks=all, and the rule that decides it.

A safe topic has at least three replicas, min.insync.replicas of at least 2, unclean leader election off, and producers with
acks=all. Always true: a verdict names one rule; if several are broken, the worst.
"""

from __future__ import annotations

from typing import NamedTuple


class DurabilityVerdict(NamedTuple):
    """Whether a topic can lose data, the rule that decides it, and what to change."""

    can_lose: bool
    writable_with_one_down: bool
    rule: str
    advice: str = ""

    @property
    def level(self) -> str:
        return "ok" if self.writable_with_one_down and not self.can_lose else "warn"

    @property
    def sentence(self) -> str:
        return f"{'can lose data' if self.can_lose else 'keeps its data'}: {self.rule}"


def effective_min_isr(replication_factor: int, min_insync_replicas: int) -> int:
    """min.insync.replicas, limited to the number of replicas."""
    return min(min_insync_replicas, replication_factor)


def judge(replication_factor: int, min_insync_replicas: int, unclean_leader_election: bool) -> DurabilityVerdict:
    """The verdict for the settings of a topic, if producers use acks=all."""
    min_isr = effective_min_isr(replication_factor, min_insync_replicas)
    writable = replication_factor > min_isr
    if replication_factor <= 1:
        rule = "ReplicationFactor 1: a record that its only broker loses is lost"
        return DurabilityVerdict(True, False, rule, "use 3 replicas, and min.insync.replicas=2")
    if unclean_leader_election:
        rule = "unclean.leader.election.enable=true: a replica that lacks acknowledged records may become leader"
        return DurabilityVerdict(True, writable, rule, "set unclean.leader.election.enable=false")
    if min_isr == 1:
        rule = "min.insync.replicas=1: a record may be acknowledged by the leader alone, and lost with it"
        more = "set min.insync.replicas=2" if replication_factor > 2 else "use 3 replicas, and min.insync.replicas=2"
        return DurabilityVerdict(True, writable, rule, more)
    lost = "1 broker" if min_isr == 2 else f"{min_isr - 1} brokers"
    rule = (
        f"ReplicationFactor {replication_factor}, min.insync.replicas={min_isr}, unclean election off: "
        f"an acknowledged record survives the loss of {lost}"
    )
    if writable:
        return DurabilityVerdict(False, True, rule)
    advice = "add a replica" if min_isr == 2 else "add a replica, or lower min.insync.replicas by one"
    return DurabilityVerdict(False, False, f"{rule}, but with one broker down acks=all is refused", advice)
