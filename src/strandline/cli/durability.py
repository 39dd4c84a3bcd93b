"""Can a topic lose records that were acknowledged with acks=all, and by which rule?

The recipe: at least three replicas, min.insync.replicas of at least 2, unclean leader election off. Always true: every verdict
names the one rule it rests on, the worst first.
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


def judge(replication_factor: int, min_insync_replicas: int, unclean_leader_election: bool) -> Verdict:
    """What the settings of a topic promise, as long as producers use acks=all."""
    writable = replication_factor > min_insync_replicas
    settings = f"ReplicationFactor {replication_factor}, min.insync.replicas={min_insync_replicas}"
    if replication_factor < min_insync_replicas:
        rule = f"{settings}: acks=all is refused at all times"
        return Verdict(False, False, rule, "lower min.insync.replicas, or add replicas")
    if replication_factor == 1:
        return Verdict(True, False, "ReplicationFactor 1: what its only broker loses is gone", "use 3 replicas")
    if unclean_leader_election:
        rule = "unclean.leader.election.enable=true: a replica that lacks acknowledged records may lead"
        return Verdict(True, writable, rule, "set unclean.leader.election.enable=false")
    if min_insync_replicas == 1:
        rule = "min.insync.replicas=1: acks=all may mean the leader alone, and its loss is the record's"
        return Verdict(True, writable, rule, "set min.insync.replicas=2")
    lost = "1 broker" if min_insync_replicas == 2 else f"{min_insync_replicas - 1} brokers"
    rule = f"{settings}, unclean election off: an acknowledged record survives the loss of {lost}"
    if writable:
        return Verdict(False, True, rule)
    return Verdict(False, False, f"{rule}, but with one broker down acks=all is refused", "use one replica more")
