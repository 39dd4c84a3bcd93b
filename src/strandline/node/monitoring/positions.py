"""Where each replica on this node is, and on the leader where its followers are, as JSON (`/replicas`).

Always true: numbers of one replica are of one moment. A lag is what is missing to the leader's log end, as far as this
node knows; None if it does not.
"""

from __future__ import annotations

from strandline.node.observation.replicas import NEVER, UNKNOWN, ObservedFollower, ObservedReplica


def described(replica: ObservedReplica, node_id: int, now: float) -> dict[str, object]:
    """`now` is on the clock of the followers' times."""
    metadata, log, leads = replica.metadata, replica.log, replica.leads
    shown: dict[str, object] = {
        "topic": replica.topic,
        "partition": replica.index,
        "topic_id": str(replica.topic_id),
        "replica": node_id,
        "role": "leader" if leads else "follower",
        "offline": replica.is_offline,
        "leader": metadata.leader,
        "leader_epoch": metadata.leader_epoch,
        "partition_epoch": metadata.partition_epoch,
        "replicas": list(metadata.replicas),
        "isr": list(replica.isr if leads else metadata.isr),
        "elr": list(metadata.elr),
        "adding_replicas": list(metadata.adding_replicas),
        "removing_replicas": list(metadata.removing_replicas),
        "log_start_offset": log.log_start_offset,
        "high_watermark": replica.high_watermark,
        "log_end_offset": log.log_end_offset,
        "last_stable_offset": replica.last_stable_offset,
        "size_bytes": log.size,
        "log_dir": log.directory.rpartition("/")[0],
        "lag": 0 if leads else follower_lag(replica),
    }
    if leads:
        shown["maximal_isr"] = list(replica.maximal_isr)
        followers = sorted(replica.followers.items())
        shown["followers"] = [_follower(follower, log.log_end_offset, now) for _, follower in followers]
    return shown


def _follower(follower: ObservedFollower, leader_end: int, now: float) -> dict[str, object]:
    return {
        "replica": follower.replica_id,
        "log_start_offset": follower.log_start_offset,
        "log_end_offset": follower.log_end_offset,
        "lag": lag_of(follower, leader_end),
        "caught_up_ms_ago": _ms_ago(follower.caught_up_at, now),
        "fetched_ms_ago": _ms_ago(follower.fetched_at, now),
        "broker_epoch": follower.broker_epoch,
    }


def _ms_ago(at: float, now: float) -> int | None:
    return None if at == NEVER else max(0, round((now - at) * 1000))


def lag_of(follower: ObservedFollower, leader_end: int) -> int | None:
    """As its leader sees it."""
    return None if follower.log_end_offset == UNKNOWN else max(0, leader_end - follower.log_end_offset)


def follower_lag(replica: ObservedReplica) -> int | None:
    """As the follower sees it: what is committed, by the leader's newest word, and not here yet."""
    known = replica.leader_high_watermark
    return None if known is None else max(0, known - replica.log.log_end_offset)
