"""Where each replica on this node is, and on the leader where its followers are, as JSON (`/replicas`).

Always true: numbers of one replica are of one moment. A lag is what is missing to the leader's log end, as far as this
node knows; None if it does not.
"""

from __future__ import annotations

from strandline.replica.followers import NEVER, UNKNOWN, FollowerProgress
from strandline.replica.following import Following
from strandline.replica.partition import Partition


def replica(partition: Partition, node_id: int, now: float) -> dict[str, object]:
    """`now` is on the clock of the followers' times."""
    state, log, leadership = partition.state, partition.log, partition.leadership
    described: dict[str, object] = {
        "topic": partition.topic,
        "partition": partition.index,
        "topic_id": str(partition.topic_id),
        "replica": node_id,
        "role": "leader" if leadership is not None else "follower",
        "offline": partition.offline,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "elr": list(state.elr),
        "adding_replicas": list(state.adding_replicas),
        "removing_replicas": list(state.removing_replicas),
        "log_start_offset": log.log_start_offset,
        "high_watermark": partition.high_watermark,
        "log_end_offset": log.log_end_offset,
        "last_stable_offset": partition.last_stable_offset,
        "size_bytes": log.size,
        "log_dir": log.directory.rpartition("/")[0],
    }
    if leadership is None:
        described["lag"] = follower_lag(partition)
    else:
        described["lag"] = 0
        described["isr"] = list(leadership.isr.isr)
        described["maximal_isr"] = list(leadership.isr.maximal)
        described["followers"] = [
            _follower(follower, log.log_end_offset, now) for _, follower in sorted(leadership.followers.items())
        ]
    return described


def _follower(follower: FollowerProgress, leader_end: int, now: float) -> dict[str, object]:
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


def lag_of(follower: FollowerProgress, leader_end: int) -> int | None:
    """As its leader sees it."""
    return None if follower.log_end_offset == UNKNOWN else max(0, leader_end - follower.log_end_offset)


def follower_lag(partition: Partition) -> int | None:
    """As the follower sees it: what is committed, by the leader's newest word, and not here yet."""
    role = partition.role
    known = role.leader_high_watermark if isinstance(role, Following) else UNKNOWN
    return None if known == UNKNOWN else max(0, known - partition.log.log_end_offset)
