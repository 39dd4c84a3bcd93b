"""The records that Raft itself writes into the log, and finds in what it fetches.

Always true: bytes from a leader are believed only as a whole: every batch carries its CRC, follows the one before it
without a gap, and belongs to an epoch between the log's last and the leader's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from strandline.raft.messages import Address, ReplicaKey
from strandline.raft.voters import VoterNode, VoterSet
from strandline.records import header as layout
from strandline.records.batch import decode
from strandline.records.control import ControlRecordType, control_key, read_control_type
from strandline.records.errors import CorruptRecord
from strandline.wire.errors import MalformedRequest
from strandline.wire.messages import data, decode_data, encode_data

ControlRecord = tuple[bytes, bytes]


def leader_change(leader_id: int, voter_ids: Iterable[int], granting: Iterable[int]) -> ControlRecord:
    """The first record of an epoch: who leads it, among whom, and by whose votes."""
    message = data("LeaderChangeMessage")
    record = message(
        version=0,
        leader_id=leader_id,
        voters=[message.Voter(voter_id=voter) for voter in voter_ids],
        granting_voters=[message.Voter(voter_id=voter) for voter in granting],
    )
    return control_key(ControlRecordType.LEADER_CHANGE), encode_data("LeaderChangeMessage", 0, record)


def kraft_version_record(kraft_version: int) -> ControlRecord:
    record = data("KRaftVersionRecord")(version=0, k_raft_version=kraft_version)
    return control_key(ControlRecordType.KRAFT_VERSION), encode_data("KRaftVersionRecord", 0, record)


def voters_record(voters: VoterSet) -> ControlRecord:
    message = data("VotersRecord")
    record = message(
        version=0,
        voters=[
            message.Voter(
                voter_id=node.key.id,
                voter_directory_id=node.key.directory_id,
                endpoints=[
                    message.Endpoint(name=name, host=address.host, port=address.port)
                    for name, address in node.endpoints.items()
                ],
                k_raft_version_feature=message.KRaftVersionFeature(
                    min_supported_version=node.kraft_versions.start, max_supported_version=node.kraft_versions.stop - 1
                ),
            )
            for node in voters
        ],
    )
    return control_key(ControlRecordType.KRAFT_VOTERS), encode_data("VotersRecord", 0, record)


def read_voters(value: bytes) -> VoterSet:
    """The voters that a VotersRecord names; CorruptRecord if they could not be a quorum."""
    try:
        record = decode_data("VotersRecord", 0, value)
    except MalformedRequest as error:
        raise CorruptRecord(f"A VotersRecord cannot be read: {error}") from None
    if not record.voters or not all(voter.endpoints for voter in record.voters):
        raise CorruptRecord("A VotersRecord names no voters, or one without an endpoint")
    return VoterSet(
        VoterNode(
            ReplicaKey(voter.voter_id, voter.voter_directory_id),
            {endpoint.name: Address(endpoint.host, endpoint.port) for endpoint in voter.endpoints},
            range(
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version + 1,
            ),
        )
        for voter in record.voters
    )


def read_kraft_version(value: bytes) -> int:
    try:
        return int(decode_data("KRaftVersionRecord", 0, value).k_raft_version)
    except MalformedRequest as error:
        raise CorruptRecord(f"A KRaftVersionRecord cannot be read: {error}") from None


class CheckedBatches(NamedTuple):
    """What a leader sent, checked."""

    records: bytes
    """Whole batches only: the last one may have been cut by the size that was asked for."""
    end_offset: int
    voters: list[tuple[int, VoterSet]]
    kraft_versions: list[tuple[int, int]]


def check(records: bytes, *, offset: int, last_epoch: int, leader_epoch: int) -> CheckedBatches:
    """What these bytes bring to a log that ends at `offset`; CorruptRecord if they cannot follow it."""
    view = memoryview(records)
    voters: list[tuple[int, VoterSet]] = []
    kraft_versions: list[tuple[int, int]] = []
    size = 0
    for position, header in layout.iterate(records):
        size = position + header.size_bytes
        batch = view[position:size]
        if not layout.crc_valid(batch):
            raise CorruptRecord(f"The batch at offset {header.base_offset} does not carry its CRC")
        if header.base_offset != offset or header.last_offset_delta < 0:
            raise CorruptRecord(f"A batch with offsets from {header.base_offset} cannot follow an end at {offset}")
        if not last_epoch <= header.partition_leader_epoch <= leader_epoch:
            raise CorruptRecord(
                f"A batch of epoch {header.partition_leader_epoch} is not between {last_epoch} and {leader_epoch}"
            )
        offset, last_epoch = header.next_offset, header.partition_leader_epoch
        if header.is_control:
            _take_control(bytes(batch), voters, kraft_versions)
    if records and not size:
        raise CorruptRecord("The bytes end before their first batch does")
    return CheckedBatches(records if size == len(records) else records[:size], offset, voters, kraft_versions)


def _take_control(batch: bytes, voters: list[tuple[int, VoterSet]], kraft_versions: list[tuple[int, int]]) -> None:
    for record in decode(batch, check_crc=False):
        kind = read_control_type(record.key)
        if kind is ControlRecordType.KRAFT_VOTERS:
            voters.append((record.offset, read_voters(record.value or b"")))
        elif kind is ControlRecordType.KRAFT_VERSION:
            kraft_versions.append((record.offset, read_kraft_version(record.value or b"")))
