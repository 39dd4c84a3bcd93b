"""Can a topic lose records that were acknowledged with acks=all, and by which rule?

The recipe: at least three replicas, min.insync.replicas of at least 2, unclean leader election off, and producers that use
acks=all. Always true: every verdict names the one rule it rests on, the worst first.
"""

from __future__ import annotations

from typing import NamedTuple


class Verdict(NamedTuple):
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
    """More than all replicas can't be in sync: a larger min.insync.replicas counts as all of them."""
    return min(min_insync_replicas, replication_factor)


def judge(replication_factor: int, min_insync_replicas: int, unclean_leader_election: bool) -> Verdict:
    """What the settings of a topic promise, as long as producers use acks=all."""
    min_isr = effective_min_isr(replication_factor, min_insync_replicas)
    writable = replication_factor > min_isr
    if replication_factor <= 1:
        rule = "ReplicationFactor 1: what its only broker loses is gone"
        return Verdict(True, False, rule, "use 3 replicas, and min.insync.replicas=2")
    if unclean_leader_election:
        rule = "unclean.leader.election.enable=true: a replica that lacks acknowledged records may lead"
        return Verdict(True, writable, rule, "set unclean.leader.election.enable=false")
    if min_isr == 1:
        rule = "min.insync.replicas=1: acks=all may mean the leader alone, and its loss is the record's"
        more = "set min.insync.replicas=2" if replication_factor > 2 else "use 3 replicas, and min.insync.replicas=2"
        return Verdict(True, writable, rule, more)
    lost = "1 broker" if min_isr == 2 else f"{min_isr - 1} brokers"
    rule = (
        f"ReplicationFactor {replication_factor}, min.insync.replicas={min_isr}, unclean election off: "
        f"an acknowledged record survives the loss of {lost}"
    )
    if writable:
        return Verdict(False, True, rule)
    advice = "use one replica more" if min_isr == 2 else "use one replica more, or lower min.insync.replicas by one"
    return Verdict(False, False, f"{rule}, but with one broker down acks=all is refused", advice)
