"""Checkpoint files: the text is Kafka's, and a file that is not sound is not believed."""

from __future__ import annotations

import pytest

from strandline.ids import Uuid
from strandline.log import checkpoints
from strandline.log.errors import CorruptLog

from .conftest import LogDir


@pytest.fixture
def path(directory: LogDir) -> str:
    directory.disk.mkdir(directory.path)
    return directory.file("checkpoint")


def test_offsets_as_kafka_writes_them(directory: LogDir, path: str) -> None:
    offsets = {("b", 10): 7, ("a.b-c", 2): 2**60, ("b", 9): 0}
    checkpoints.write_offsets(directory.disk, path, offsets)
    assert directory.bytes("checkpoint") == b"0\n3\na.b-c 2 1152921504606846976\nb 9 0\nb 10 7\n"
    assert checkpoints.read_offsets(directory.disk, path) == offsets


def test_epochs_as_kafka_writes_them(directory: LogDir, path: str) -> None:
    checkpoints.write_epochs(directory.disk, path, [(0, 0), (3, 25)])
    assert directory.bytes("checkpoint") == b"0\n2\n0 0\n3 25\n"
    assert checkpoints.read_epochs(directory.disk, path) == [(0, 0), (3, 25)]


def test_nothing_is_two_lines(directory: LogDir, path: str) -> None:
    checkpoints.write_offsets(directory.disk, path, {})
    assert directory.bytes("checkpoint") == b"0\n0\n"
    assert checkpoints.read_offsets(directory.disk, path) == {}


def test_no_file_and_an_empty_file_hold_nothing(directory: LogDir, path: str) -> None:
    assert checkpoints.read_epochs(directory.disk, path) == []
    directory.replace("checkpoint", b"")
    assert checkpoints.read_epochs(directory.disk, path) == []


@pytest.mark.parametrize(
    "text",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\n",
        b"0\n\n",
        b"0\nmany\n",
        b"0\n2\n0 0\n",
        b"0\n1\n0 0\n1 5\n",
        b"0\n1\n0 0 0\n",
        b"0\n1\n0\n",
        b"0\n1\n0 zero\n",
        b"0\n1\n0 \xc2\xb2\n",
        b"0\n1\n\xff\xfe 1\n",
        b"0\n2\n3 0\n2 5\n",
        b"0\n2\n2 5\n3 5\n",
        b"\0" * 40,
    ],
)
def test_what_cannot_be_right_is_refused(directory: LogDir, path: str, text: bytes) -> None:
    directory.replace("checkpoint", text)
    with pytest.raises(CorruptLog, match="checkpoint"):
        checkpoints.read_epochs(directory.disk, path)


def test_partition_metadata_as_kafka_writes_it(directory: LogDir, path: str) -> None:
    topic_id = str(Uuid(bytes(range(16))))
    data = checkpoints.partition_metadata(topic_id)
    assert data == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert checkpoints.read_partition_metadata(directory.disk, path) is None
    directory.replace("checkpoint", data)
    assert checkpoints.read_partition_metadata(directory.disk, path) == topic_id
    directory.replace("checkpoint", b"version: 0\n")
    with pytest.raises(CorruptLog):
        checkpoints.read_partition_metadata(directory.disk, path)
