"""The checks of `doctor` in a cluster: quorum, brokers, disks, partitions, the durability of topics, settings, groups,
transactions.

Always true: a broker is healthy only if it is unfenced and answers; a check that fails to run is reported, and the others go on.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from strandline.cli.configs.config_admin import DYNAMIC_TOPIC
from strandline.cli.doctor import group_checks, listener_checks, transaction_checks
from strandline.cli.doctor.checks import FAIL, OK, WARN, Finding
from strandline.cli.topics import topic_admin
from strandline.cli.topics.durability import effective_min_isr
from strandline.config.errors import ConfigError
from strandline.config.topic import TOPIC
from strandline.errors import KafkaError

if TYPE_CHECKING:
    from strandline.cli.topics.topic_admin import TopicView
    from strandline.client.blocking import Admin
    from strandline.client.core.cluster_metadata import BrokerMetadata
    from strandline.client.flow.descriptions import (
        ClusterDescription,
        PartitionDescription,
        QuorumInfo,
        QuorumReplicaState,
    )
    from strandline.ids import TopicPartition

FREE_SHARE_MIN = 0.10
CONNECT_TIMEOUT_S = 2.0
SILENT_MS = 5000
"""A voter fetches from its leader twice a second."""
BEHIND_MS = 5000
NOT_KNOWN = -1
NAMES_SHOWN_MAX = 5
NO_QUORUM = "start controllers until more than half of the voters run; until then no leader is elected and nothing can be changed"


def cluster(admin: Admin) -> Iterator[Finding]:
    quorum = _ask(admin.describe_quorum)
    if isinstance(quorum, KafkaError):
        yield Finding(FAIL, "quorum", f"no active controller: {quorum.message}", NO_QUORUM)
    else:
        yield from voters(quorum)
    described = admin.describe_cluster(include_fenced_brokers=True)
    silent = {broker.node_id for broker in described.brokers if not _answers(broker.host, broker.port)}
    yield from brokers(described, silent)
    live = [broker for broker in described.brokers if broker.node_id not in described.fenced | silent]
    yield from listener_checks.listeners({broker.node_id: listener_checks.configs_of(admin, broker) for broker in live})
    yield from disks(admin, live)
    names = topic_admin.find(admin, None)
    views = topic_admin.describe(admin, names, with_reassignments=not isinstance(quorum, KafkaError))
    yield from topics(views, silent)
    if live:
        yield from group_checks.groups(admin)
        if transaction_checks.STATE_TOPIC in names:
            now_ms = time.time_ns() // 1_000_000
            yield from transaction_checks.transactions(admin, _led_by_live(views, silent), now_ms)
        metrics = {broker.node_id: group_checks.metrics_of(admin, broker) for broker in live}
        yield from transaction_checks.markers(metrics)
        yield from group_checks.cleaners(metrics)


def _ask(question: Callable[[], QuorumInfo]) -> QuorumInfo | KafkaError:
    try:
        return question()
    except KafkaError as error:
        return error


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
        return True
    except OSError:
        return False


# The quorum


def voters(quorum: QuorumInfo) -> Iterator[Finding]:
    """The leader, whether the other voters follow it, and how many more may fail."""
    leader = next((voter for voter in quorum.voters if voter.replica_id == quorum.leader_id), None)
    if leader is None:
        yield Finding(FAIL, "quorum", "the controllers have no leader", NO_QUORUM)
        return
    problems = {
        voter.replica_id: problem
        for voter in quorum.voters
        if voter is not leader and (problem := _problem(voter, leader)) is not None
    }
    count, healthy = len(quorum.voters), len(quorum.voters) - len(problems)
    found = f"controller {quorum.leader_id} is active in epoch {quorum.leader_epoch}; {healthy} of {count} voters are caught up"
    spare = healthy - (count // 2 + 1)
    if problems and spare <= 0:
        yield Finding(FAIL, "quorum", found, "start the others: if one more fails there is no active controller")
    elif problems:
        yield Finding(WARN, "quorum", found, f"start the others: only {spare} more may fail")
    else:
        yield Finding(OK, "quorum", found)
    for voter_id, problem in problems.items():
        advice = f"is controller {voter_id} running, and does it reach controller {quorum.leader_id}?"
        yield Finding(WARN, "quorum", f"voter {voter_id} {problem}", advice)


def _problem(voter: QuorumReplicaState, leader: QuorumReplicaState) -> str | None:
    """What is wrong with a voter that should follow the leader; None if nothing."""
    lag = leader.log_end_offset - voter.log_end_offset
    now_ms = leader.last_fetch_ms if leader.last_fetch_ms != NOT_KNOWN else leader.last_caught_up_ms
    if NOT_KNOWN in (voter.last_fetch_ms, voter.log_end_offset):
        return "has not contacted the active controller"
    if now_ms != NOT_KNOWN and now_ms - voter.last_fetch_ms > SILENT_MS:
        return f"last fetched {(now_ms - voter.last_fetch_ms) / 1000:.0f} s ago, and is {lag} records behind"
    if lag > 0 and now_ms != NOT_KNOWN and now_ms - voter.last_caught_up_ms > BEHIND_MS:
        return f"is {lag} records behind"
    return None


# Brokers and their disks


def brokers(described: ClusterDescription, silent: set[int]) -> Iterator[Finding]:
    """One finding for all healthy brokers, and one for each of the others."""
    healthy = [b for b in described.brokers if b.node_id not in described.fenced | silent]
    if healthy:
        yield Finding(OK, "brokers", ", ".join(map(_name, healthy)))
    for broker in described.brokers:
        if broker.node_id in described.fenced and broker.node_id in silent:
            found = f"{_name(broker)} is registered, but fenced, and does not answer"
            advice = "start it; if it is gone for good, move its replicas away and `strandline cluster unregister` it"
            yield Finding(FAIL, "brokers", found, advice)
        elif broker.node_id in described.fenced:
            found = f"{_name(broker)} is fenced: it runs, but the active controller gets no heartbeats from it"
            yield Finding(FAIL, "brokers", found, "does it reach the controllers? Its log says what it is waiting for")
        elif broker.node_id in silent:
            found = f"{_name(broker)} is not fenced, but does not answer"
            advice = "if it has just failed it will be fenced shortly; otherwise its port cannot be reached from here"
            yield Finding(FAIL, "brokers", found, advice)


def _name(broker: BrokerMetadata) -> str:
    return f"{broker.node_id} ({broker.host}:{broker.port})"


def disks(admin: Admin, live: Iterable[BrokerMetadata]) -> Iterator[Finding]:
    for broker in live:
        try:
            directories = admin.describe_log_dirs([broker.node_id])[broker.node_id]
        except KafkaError as error:
            yield Finding(
                WARN,
                "disk",
                f"broker {_name(broker)} does not report its log dirs: {error.message}",
                "look at it with df",
            )
            continue
        for directory in directories:
            where = f"node {broker.node_id}, {directory.path}"
            if directory.error is None:
                yield disk(where, directory.total_bytes, directory.usable_bytes)
            else:
                advice = "repair or replace the disk, format it if it is new, and restart the node"
                yield Finding(FAIL, "disk", f"{where} is offline: {directory.error.name}", advice)


def disk(where: str, total_bytes: int, usable_bytes: int) -> Finding:
    if total_bytes <= 0:
        return Finding(WARN, "disk", f"{where}: size unknown", "look at it with df")
    share = usable_bytes / total_bytes
    found = f"{where}: {usable_bytes / 1e9:.1f} GB of {total_bytes / 1e9:.1f} GB free"
    if share >= FREE_SHARE_MIN:
        return Finding(OK, "disk", found)
    return Finding(WARN, "disk", found, "free some space, or lower retention.ms or retention.bytes")


# Topics


def topics(views: Iterable[TopicView], silent: Collection[int] = ()) -> Iterator[Finding]:
    """Unhealthy partitions, then for each topic whether it can lose data."""
    views = list(views)
    unhealthy = [finding for view in views for finding in partitions(view, silent)]
    if views and not unhealthy:
        count = sum(len(view.topic.partitions) for view in views)
        found = f"{count} in {len(views)} topics: each has a leader, and all its replicas in sync"
        yield Finding(OK, "partitions", found)
    yield from unhealthy
    for view in views:
        verdict = view.verdict
        yield Finding(verdict.level, "durability", f"{view.topic.name} {verdict.sentence}", verdict.advice)
    yield from settings(views)


def settings(views: Iterable[TopicView]) -> Iterator[Finding]:
    """Settings of topics that have no effect here, one finding for each setting."""
    named: dict[tuple[str, str], list[str]] = {}
    for view in views:
        for entry in view.configs:
            if entry.source == DYNAMIC_TOPIC and (unmet := _unmet(entry.name, entry.value)) is not None:
                named.setdefault((entry.name, unmet), []).append(view.topic.name)
    for (key, unmet), names in named.items():
        shown = ", ".join(names[:NAMES_SHOWN_MAX]) + (" and others" if len(names) > NAMES_SHOWN_MAX else "")
        yield Finding(WARN, "settings", f"{shown}: {unmet}", f"`strandline configs unset --topic {names[0]} {key}`")


def _unmet(name: str, value: str | None) -> str | None:
    """Why a topic's setting has no effect; None if it has. A topic that Kafka created may have any setting."""
    key = TOPIC.get(name)
    if key is None or value is None:
        return None
    try:
        key.accept(value)
        return key.warning(value)
    except ConfigError as error:
        return error.message


def partitions(view: TopicView, silent: Collection[int] = ()) -> Iterator[Finding]:
    """Unhealthy partitions; those with the same problem are one finding. `silent` are brokers that do not answer."""
    grouped: dict[tuple[str, str, str], list[int]] = {}
    for partition in view.topic.partitions:
        if (problem := _problem_of(view, partition, silent)) is not None:
            grouped.setdefault(problem, []).append(partition.partition)
    for (level, found, advice), indexes in grouped.items():
        which = ", ".join(f"{view.topic.name}-{run}" for run in _runs(indexes))
        yield Finding(level, "partitions", f"{which}: {found}", advice)


def _led_by_live(views: Iterable[TopicView], silent: Collection[int]) -> list[TopicPartition]:
    return [
        (view.topic.name, partition.partition)
        for view in views
        for partition in view.topic.partitions
        if topic_admin.has_leader(partition) and partition.leader not in silent
    ]


def _runs(indexes: Iterable[int]) -> Iterator[str]:
    """The numbers as text; three or more consecutive ones as a range, `0..49`."""
    for _, run in groupby(enumerate(sorted(indexes)), key=lambda placed: placed[1] - placed[0]):
        members = [index for _, index in run]
        yield from (f"{members[0]}..{members[-1]}",) if len(members) > 2 else map(str, members)


def _problem_of(
    view: TopicView, partition: PartitionDescription, silent: Collection[int]
) -> tuple[str, str, str] | None:
    missing = _ids(sorted(set(partition.replicas) - set(partition.isr)))
    min_isr = effective_min_isr(len(partition.replicas), view.min_insync_replicas)
    if not topic_admin.has_leader(partition):
        return FAIL, "no leader, nothing can be read or written", _how_to_lead(partition)
    if partition.leader in silent:
        found = f"led by broker {partition.leader}, which does not answer"
        return (
            FAIL,
            found,
            "another in-sync replica becomes leader once the active controller has fenced it; restart it",
        )
    if len(partition.isr) < min_isr:
        found = f"under min ISR: in sync is {_ids(partition.isr)}, and min.insync.replicas={min_isr}"
        return FAIL, found, f"acks=all is refused until broker {missing or 'more'} is in sync: is it running?"
    if topic_admin.is_under_replicated(partition, view.reassignments.get(partition.partition)):
        advice = f"is broker {missing} running and catching up? `strandline replicas` shows the lag of each"
        return WARN, f"under-replicated: {missing} out of sync", advice
    return None


def _how_to_lead(partition: PartitionDescription) -> str:
    """Which brokers may lead without losing committed records, and what electing another one costs."""
    eligible = _ids((*partition.isr, *(partition.elr or ()))) or _ids(partition.last_known_elr or ())
    others = "`strandline elect --unclean` elects any replica that runs, and loses the records that it lacks"
    if eligible:
        return f"start broker {eligible}, which has all committed records; {others}"
    return f"start the brokers that have a replica, {_ids(partition.replicas)}; {others}"


def _ids(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))
