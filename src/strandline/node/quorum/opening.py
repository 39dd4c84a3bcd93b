"""What a node knows of the quorum when it starts: its newest whole snapshot, its log, its vote, and who votes.

Always true: what a snapshot holds is committed; of the log behind it nothing is believed to be until the high watermark is
known. A snapshot that is torn or rotten is passed over. A directory of a quorum of one, without snapshots or voters' records,
opens as one.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import NamedTuple

from strandline.config.node import NodeConfig
from strandline.config.topic_config import TopicConfig
from strandline.metadata.image import MetadataImage
from strandline.node.logger import Logger
from strandline.node.quorum.batches import control
from strandline.node.quorum.election_file import ElectionFile
from strandline.node.quorum.images import LoadedSnapshot, load
from strandline.node.quorum.metadata_log import MetadataLog
from strandline.node.quorum.snapshots import BOOTSTRAP, CorruptSnapshot, Snapshots
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import Address, Endpoints, OffsetAndEpoch, ReplicaKey
from strandline.raft.raft import Raft
from strandline.raft.timings import Timings
from strandline.raft.voters import VoterNode, VoterSet

FETCH_WAIT_S_MIN, FETCHES_PER_TIMEOUT = 0.5, 4


class OpenedQuorum(NamedTuple):
    loaded: LoadedSnapshot
    election: ElectionState
    voters: VoterSet
    """Before any record of the log changed them."""
    voter_history: list[tuple[int, VoterSet]]
    kraft_version: int


def newest_snapshot(snapshots: Snapshots, logger: Logger) -> tuple[OffsetAndEpoch | None, LoadedSnapshot]:
    """The newest snapshot that is whole, or the one of `storage format`, or nothing. Blocks."""
    for snapshot_id in [*reversed(snapshots.ids), *([BOOTSTRAP] if snapshots.has_bootstrap else [])]:
        try:
            loaded = load(snapshot_id, snapshots.read(snapshot_id))
        except CorruptSnapshot as error:
            logger.warning("passed over a metadata snapshot", end_offset=snapshot_id.offset, reason=error.message)
            snapshots.forget(snapshot_id)
            continue
        return (None if snapshot_id == BOOTSTRAP else snapshot_id), loaded
    return None, LoadedSnapshot(MetadataImage(), 0, None, 0)


def open_all(
    config: NodeConfig,
    log: MetadataLog,
    snapshots: Snapshots,
    election_file: ElectionFile,
    own: VoterNode,
    logger: Logger,
    *,
    clean: bool,
) -> OpenedQuorum:
    """Blocks."""
    log.make_directory()
    election = election_file.read()
    snapshots.find()
    latest, loaded = newest_snapshot(snapshots, logger)
    log.load(_log_config(config), latest, clean=clean, is_relied_on=config.controller)
    if log.truncated_bytes:
        logger.warning("metadata log cut at its first bad batch", truncated_bytes=log.truncated_bytes)
    kraft_version = loaded.kraft_version
    history: list[tuple[int, VoterSet]] = []
    for offset, record in log.control_records():
        if offset >= loaded.image.end_offset:
            named, level = control([record])
            if named is not None:
                history.append((offset, named))
            kraft_version = kraft_version if level is None else level
    voters = loaded.voters or static_voters(config)
    if not len(voters) and not history and election_file.names_only(config.node_id):
        voters = VoterSet([own])
    return OpenedQuorum(loaded, election, voters, history, kraft_version)


def start_raft(
    config: NodeConfig,
    own: VoterNode,
    log: MetadataLog,
    opened: OpenedQuorum,
    election: ElectionState,
    randomness: random.Random,
) -> Raft:
    """Raft on what was opened."""
    bootstrap = () if config.quorum_voters else config.quorum_bootstrap_servers
    return Raft(
        own.key,
        own_endpoints=own.endpoints,
        is_controller=config.controller,
        voters=opened.voters,
        voter_history=opened.voter_history,
        kraft_version=opened.kraft_version,
        bootstrap=[Address(*server) for server in bootstrap],
        log=log,
        state=election,
        timings=_timings(config),
        randomness=randomness,
    )


def _log_config(config: NodeConfig) -> TopicConfig:
    return replace(
        config.topic_defaults,
        segment_bytes=config.internal_metadata_log_segment_bytes or config.metadata_log_segment_bytes,
        segment_ms=config.metadata_log_segment_ms,
        segment_jitter_ms=0,
        # What was voted for or counted is on the device: recovery must not trust the page cache.
        flush_messages=1,
    )


def static_voters(config: NodeConfig) -> VoterSet:
    """`controller.quorum.voters`."""
    listener = config.controller_listener_names[0]
    return VoterSet(
        VoterNode(ReplicaKey(voter.id), {listener: Address(voter.host, voter.port)}) for voter in config.quorum_voters
    )


def own_endpoints(config: NodeConfig) -> Endpoints:
    """Where the controller of this node is to be found."""
    return {
        listener.name: Address(listener.advertised_host, listener.advertised_port)
        for listener in config.listeners
        if listener.controller
    }


def _timings(config: NodeConfig) -> Timings:
    return Timings(
        election_timeout_s=config.controller_quorum_election_timeout_ms / 1000,
        election_backoff_max_s=config.controller_quorum_election_backoff_max_ms / 1000,
        fetch_timeout_s=config.controller_quorum_fetch_timeout_ms / 1000,
        request_timeout_s=config.controller_quorum_request_timeout_ms / 1000,
        retry_backoff_s=config.controller_quorum_retry_backoff_ms / 1000,
        # Often enough for the timeouts of all voters; high timeouts ask for few Fetches.
        fetch_wait_s=max(FETCH_WAIT_S_MIN, config.controller_quorum_fetch_timeout_ms / 1000 / FETCHES_PER_TIMEOUT),
        fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
        fetch_snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
    )
