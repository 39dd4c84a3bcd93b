"""Snapshots: whole ones come back as they were, and nothing else comes back at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata import snapshot
from strandline.metadata.image import MetadataImage
from strandline.metadata.image_records import records_of
from strandline.metadata.replay import replay
from strandline.metadata.snapshot import CorruptSnapshot
from strandline.records.batch import decode
from strandline.records.header import iterate
from strandline.wire.messages import data
from tests.unit.metadata.images import an_image

if TYPE_CHECKING:
    from strandline.wire.stubs import data as stubs

VotersRecord = data("VotersRecord")
VOTERS = VotersRecord(
    version=0,
    voters=[
        VotersRecord.Voter(
            voter_id=1,
            voter_directory_id=Uuid(b"d" * 16),
            endpoints=[VotersRecord.Endpoint(name="CONTROLLER", host="127.0.0.1", port=9093)],
            k_raft_version_feature=VotersRecord.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
        )
    ],
)


def written(image: MetadataImage, *, kraft_version: int = 1, voters: stubs.VotersRecord | None = VOTERS) -> list[bytes]:
    snapshot_id = (image.end_offset, image.epoch)
    return list(
        snapshot.write(image, snapshot_id, kraft_version=kraft_version, voters=voters, timestamp_ms=1_700_000_000_000)
    )


def corruption(content: bytes) -> str:
    with pytest.raises(CorruptSnapshot) as error:
        snapshot.read(content)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
    return str(error.value)


@given(st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_an_image_comes_back(seed: int) -> None:
    image = an_image(seed)
    found = snapshot.read(b"".join(written(image)))
    assert replay(MetadataImage(), found.records, image.end_offset, image.epoch) == image
    assert (found.kraft_version, found.voters, found.last_contained_timestamp) == (1, VOTERS, 1_700_000_000_000)


def test_a_fixed_quorum_leaves_no_voters() -> None:
    found = snapshot.read(b"".join(written(an_image(1), kraft_version=0, voters=None)))
    assert (found.kraft_version, found.voters) == (0, None)
    found = snapshot.read(b"".join(written(an_image(1), voters=None)))
    assert (found.kraft_version, found.voters) == (1, None)


def test_batches_are_bounded_and_their_offsets_count_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "BATCH_RECORDS_MAX", 7)
    image = an_image(3, topics=20)
    parts = written(image)
    content = b"".join(parts)
    headers = [header for _, header in iterate(content)]
    assert [header.base_offset for header in headers[1:]] == [header.next_offset for header in headers[:-1]]
    assert [header.is_control for header in headers] == [True, *[False] * (len(headers) - 2), True]
    assert {header.partition_leader_epoch for header in headers} == {image.epoch}
    assert max(header.records_count for header in headers[1:]) == 7
    assert sum(header.records_count for header in headers[1:-1]) == len(list(records_of(image)))
    assert [header.size_bytes for header in headers] == [len(part) for part in parts]
    monkeypatch.setattr(snapshot, "BATCH_BYTES_MAX", 300)
    smaller = written(image)
    assert len(smaller) > len(parts)
    assert all(len(part) < 300 + 1000 and len(list(decode(part))) <= 7 for part in smaller)
    assert snapshot.read(b"".join(smaller)).records == snapshot.read(content).records


def test_every_cut_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "BATCH_RECORDS_MAX", 3)
    content = b"".join(written(an_image(5, topics=1)))
    for size in range(len(content)):
        assert "cut off" in corruption(content[:size])


def test_every_flipped_bit_is_noticed() -> None:
    """Except in the epoch of a batch, which no checksum covers and nothing here reads."""
    content = b"".join(written(an_image(4)))
    unread = {position + at for position, _ in iterate(content) for at in range(12, 16)}
    for at in set(range(len(content))) - unread:
        corruption(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])


def test_batches_that_are_missing_doubled_or_out_of_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "BATCH_RECORDS_MAX", 3)
    parts = written(an_image(6, topics=9))
    assert len(parts) > 4
    assert corruption(b"").endswith("cut off")
    assert "offset 3 at position 0, not 0" in corruption(b"".join(parts[1:]))
    assert ", not 3" in corruption(b"".join([parts[0], *parts[2:]]))
    assert corruption(b"".join(parts[:-1])).endswith("cut off")
    assert "bytes after the snapshot's footer" in corruption(b"".join([*parts, parts[-1]]))
    assert "bytes after the snapshot's footer" in corruption(b"".join([*parts, b"\0" * 5]))


def test_a_beginning_that_is_none() -> None:
    bare = snapshot.write_records([], 30, (0, 0), timestamp_ms=5)
    head, foot = list(bare)
    record_first = list(snapshot.write_records(records_of(an_image(1)), 30, (0, 0), timestamp_ms=5))[1]
    as_first = bytes(8) + record_first[8:]
    assert "records before the snapshot's header" in corruption(as_first + foot)
    assert "begins with SNAPSHOT_FOOTER" in corruption(bytes(8) + foot[8:])
    assert "a second header" in corruption(head + (1).to_bytes(8, "big") + head[8:])


def test_times_may_differ_for_a_cluster_that_has_no_log_yet() -> None:
    content = b"".join(snapshot.write_records([], 30, (0, 0), timestamp_ms=5, last_contained_timestamp=0))
    assert snapshot.read(content).last_contained_timestamp == 0
    assert {header.max_timestamp for _, header in iterate(content)} == {5}
