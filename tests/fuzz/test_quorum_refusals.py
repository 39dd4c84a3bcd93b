"""Bad input to the quorum over a real connection: each row, with the error that it is to be answered with.

The node is the only voter and leads; none of the rows may make it step down, so they do not disturb each other.
"""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import asyncio
import pathlib
from typing import Any

import pytest

from strandline.api.quorum.metadata_partition import TOPIC, TOPIC_ID
from strandline.api.requests.forwarding import anonymous
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.log.names import CLUSTER_METADATA_TOPIC
from strandline.node.quorum.election_file import ElectionFile
from strandline.raft.election_state import ElectionState
from strandline.wire import messages
from strandline.wire.headers import read_response_header, request_header

from .controller_stage import ControllerStage, DynamicControllerStage
from .stage import REPLY_TIMEOUT_S

FETCH, VOTE, BEGIN, END, SNAPSHOT, REGISTRATION, HEARTBEAT, UPDATE_VOTER = 1, 52, 53, 54, 59, 62, 63, 82
DESCRIBE_QUORUM, ENVELOPE = 55, 58
FOREIGN = "AAAAAAAAAAAAAAAAAAAAAA"
STRANGER = Uuid(b"a stranger's dir")
STALE_EPOCH, SOME_EPOCH = 3, 5
EPOCH_MAX, OFFSET_MAX = 2**31 - 1, 2**63 - 1

E = ErrorCode


class Line:
    """A connection to the controller listener."""

    def __init__(self, stage: ControllerStage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.stage = stage
        self._reader = reader
        self._writer = writer

    @property
    def cluster_id(self) -> str:
        return self.stage.node.context.cluster_id

    @property
    def epoch(self) -> int:
        return self.stage.node.quorum.raft.epoch

    @property
    def end_offset(self) -> int:
        return self.stage.node.quorum.log.log_end_offset

    async def ask(self, api_key: int, version: int, message: Any) -> Any:
        request = request_header(api_key, version, 7, "refusals") + messages.encode_request(api_key, version, message)
        self._writer.write(len(request).to_bytes(4, "big") + request)
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            reply = await self._reader.readexactly(size)
        correlation_id, position = read_response_header(api_key, version, reply)
        assert correlation_id == 7
        return messages.decode_response(api_key, version, reply, position)


def vote(line: Line, **said: Any) -> Any:
    Vote = messages.request(VOTE)
    partition = Vote.PartitionData(
        partition_index=said.get("partition", 0),
        replica_epoch=said.get("epoch", line.epoch),
        replica_id=said.get("candidate", 2),
        replica_directory_id=STRANGER,
        voter_directory_id=said.get("voter_directory", Uuid(bytes(16))),
        last_offset_epoch=said.get("last_epoch", 0),
        last_offset=said.get("last_offset", 0),
        pre_vote=said.get("pre_vote", False),
    )
    topic = Vote.TopicData(topic_name=said.get("topic", TOPIC), partitions=[partition] * said.get("partitions", 1))
    return Vote(
        cluster_id=said.get("cluster_id", line.cluster_id),
        voter_id=said.get("voter", 1),
        topics=[topic] * said.get("topics", 1),
    )


def begin(line: Line, **said: Any) -> Any:
    Begin = messages.request(BEGIN)
    partition = Begin.PartitionData(
        partition_index=said.get("partition", 0),
        leader_id=said.get("leader", 2),
        leader_epoch=said.get("epoch", line.epoch),
    )
    topic = Begin.TopicData(topic_name=said.get("topic", TOPIC), partitions=[partition] * said.get("partitions", 1))
    return Begin(cluster_id=said.get("cluster_id", line.cluster_id), voter_id=1, topics=[topic] * said.get("topics", 1))


def end(line: Line, **said: Any) -> Any:
    End = messages.request(END)
    partition = End.PartitionData(
        partition_index=said.get("partition", 0),
        leader_id=said.get("leader", 2),
        leader_epoch=said.get("epoch", line.epoch),
    )
    topic = End.TopicData(topic_name=said.get("topic", TOPIC), partitions=[partition] * said.get("partitions", 1))
    return End(cluster_id=said.get("cluster_id", line.cluster_id), topics=[topic] * said.get("topics", 1))


def fetch(line: Line, **said: Any) -> Any:
    Fetch = messages.request(FETCH)
    partition = Fetch.FetchPartition(
        partition=said.get("partition", 0),
        current_leader_epoch=said.get("epoch", line.epoch),
        fetch_offset=said.get("offset", line.end_offset),
        last_fetched_epoch=said.get("last_epoch", line.epoch),
        partition_max_bytes=1 << 20,
        replica_directory_id=STRANGER,
    )
    topic = Fetch.FetchTopic(
        topic_id=said.get("topic_id", TOPIC_ID), partitions=[partition] * said.get("partitions", 1)
    )
    return Fetch(
        cluster_id=said.get("cluster_id", line.cluster_id),
        replica_state=Fetch.ReplicaState(replica_id=said.get("replica", 2)),
        max_wait_ms=said.get("max_wait_ms", 0),
        max_bytes=1 << 20,
        topics=[topic] * said.get("topics", 1),
    )


def snapshot(line: Line, **said: Any) -> Any:
    Snapshot = messages.request(SNAPSHOT)
    offset, epoch = said.get("snapshot", line.stage.node.quorum._log.latest_snapshot or (0, 0))
    partition = Snapshot.PartitionSnapshot(
        partition=said.get("partition", 0),
        current_leader_epoch=said.get("epoch", line.epoch),
        snapshot_id=Snapshot.SnapshotId(end_offset=offset, epoch=epoch),
        position=said.get("position", 0),
    )
    topic = Snapshot.TopicSnapshot(name=said.get("topic", TOPIC), partitions=[partition] * said.get("partitions", 1))
    return Snapshot(
        cluster_id=said.get("cluster_id", line.cluster_id),
        replica_id=said.get("replica", 2),
        max_bytes=said.get("max_bytes", 1000),
        topics=[topic] * said.get("topics", 1),
    )


def update_voter(line: Line, **said: Any) -> Any:
    Update = messages.request(UPDATE_VOTER)
    listener = Update.Listener(name="CONTROLLER", host="127.0.0.1", port=1)
    return Update(
        cluster_id=said.get("cluster_id", line.cluster_id),
        current_leader_epoch=said.get("epoch", line.epoch),
        voter_id=said.get("voter", 1),
        voter_directory_id=said.get("directory", STRANGER),
        listeners=[listener] * said.get("listeners", 1),
        k_raft_version_feature=Update.KRaftVersionFeature(
            min_supported_version=said.get("lowest", 0), max_supported_version=said.get("highest", 1)
        ),
    )


def heartbeat(line: Line, **said: Any) -> Any:
    return messages.request(HEARTBEAT)(
        broker_id=said.get("broker", 1), broker_epoch=said.get("broker_epoch", 0), current_metadata_offset=0
    )


def registration(line: Line, **said: Any) -> Any:
    Registration = messages.request(REGISTRATION)
    broker = line.stage.node.quorum.committed.brokers[1]
    return Registration(
        broker_id=said.get("broker", 2),
        cluster_id=said.get("cluster_id", line.cluster_id),
        incarnation_id=STRANGER,
        listeners=[Registration.Listener(name="PLAINTEXT", host="127.0.0.1", port=1)] * said.get("listeners", 1),
        features=[Registration.Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
        log_dirs=said.get("log_dirs", list(broker.log_dirs)),
    )


def envelope(line: Line, **said: Any) -> Any:
    describe = messages.encode_request(DESCRIBE_QUORUM, 2, messages.request(DESCRIBE_QUORUM)())
    header = request_header(said.get("api_key", DESCRIBE_QUORUM), said.get("version", 2), 7, "embedded")
    return messages.request(ENVELOPE)(
        request_data=(header + describe)[: said.get("size")],
        request_principal=said.get("principal", anonymous()),
        client_host_address=said.get("address", bytes(4)),
    )


MAKERS: dict[Any, tuple[int, int]] = {
    vote: (VOTE, 2),
    begin: (BEGIN, 1),
    end: (END, 1),
    fetch: (FETCH, 18),
    snapshot: (SNAPSHOT, 1),
    update_voter: (UPDATE_VOTER, 0),
    heartbeat: (HEARTBEAT, 2),
    registration: (REGISTRATION, 4),
    envelope: (ENVELOPE, 0),
}
ABOUT_ONE_PARTITION = (vote, begin, end, fetch, snapshot)


ROWS = [
    *((make, {"topics": 0}, E.INVALID_REQUEST) for make in ABOUT_ONE_PARTITION),
    *((make, {"topics": 2}, E.INVALID_REQUEST) for make in ABOUT_ONE_PARTITION),
    *((make, {"partitions": 0}, E.INVALID_REQUEST) for make in ABOUT_ONE_PARTITION),
    *((make, {"partitions": 2}, E.INVALID_REQUEST) for make in ABOUT_ONE_PARTITION),
    *((make, {"partition": 1}, E.INVALID_REQUEST) for make in (vote, begin, end, fetch)),
    *((make, {"topic": "plain"}, E.INVALID_REQUEST) for make in (vote, begin, end)),
    *((make, {"cluster_id": FOREIGN}, E.INCONSISTENT_CLUSTER_ID) for make in ABOUT_ONE_PARTITION),
    (update_voter, {"cluster_id": FOREIGN}, E.INCONSISTENT_CLUSTER_ID),
    (registration, {"cluster_id": FOREIGN}, E.INCONSISTENT_CLUSTER_ID),
    *((make, {"epoch": STALE_EPOCH}, E.FENCED_LEADER_EPOCH) for make in (vote, begin, end, snapshot, update_voter)),
    (vote, {"epoch": STALE_EPOCH, "pre_vote": True}, E.FENCED_LEADER_EPOCH),
    (fetch, {"epoch": STALE_EPOCH, "last_epoch": 0}, E.FENCED_LEADER_EPOCH),
    (vote, {"epoch": 0}, E.INVALID_REQUEST),  # whoever campaigns has begun an epoch
    *((make, {"epoch": EPOCH_MAX}, E.INVALID_REQUEST) for make in (vote, begin, end)),
    *((make, {"epoch": EPOCH_MAX}, E.UNKNOWN_LEADER_EPOCH) for make in (fetch, snapshot, update_voter)),
    # A vote
    (vote, {"candidate": -1}, E.INVALID_REQUEST),
    (vote, {"candidate": 1}, E.INVALID_REQUEST),
    (vote, {"last_offset": -1}, E.INVALID_REQUEST),
    (vote, {"last_epoch": -1}, E.INVALID_REQUEST),
    (vote, {"last_epoch": EPOCH_MAX}, E.INVALID_REQUEST),
    (vote, {"voter": 2}, E.INVALID_VOTER_KEY),
    (vote, {"voter_directory": STRANGER}, E.INVALID_VOTER_KEY),
    # A leader of an epoch that has one
    (begin, {"leader": -1}, E.INVALID_REQUEST),
    (begin, {"leader": 1}, E.INVALID_REQUEST),
    (begin, {"leader": 2}, E.INVALID_REQUEST),
    (end, {"leader": -1}, E.INVALID_REQUEST),
    (end, {"leader": 1}, E.INVALID_REQUEST),
    (end, {"leader": 2}, E.INVALID_REQUEST),
    # A reader of the log
    (fetch, {"topic_id": STRANGER}, E.INVALID_REQUEST),
    (fetch, {"offset": -1}, E.INVALID_REQUEST),
    (fetch, {"last_epoch": -1}, E.INVALID_REQUEST),
    (fetch, {"last_epoch": EPOCH_MAX}, E.INVALID_REQUEST),
    (fetch, {"replica": 1}, E.INVALID_REQUEST),
    # A reader of a snapshot
    (snapshot, {"topic": "plain"}, E.UNKNOWN_TOPIC_OR_PARTITION),
    (snapshot, {"partition": 1}, E.UNKNOWN_TOPIC_OR_PARTITION),
    (snapshot, {"snapshot": (OFFSET_MAX, 1)}, E.SNAPSHOT_NOT_FOUND),
    (snapshot, {"snapshot": (-1, -1)}, E.SNAPSHOT_NOT_FOUND),
    (snapshot, {"snapshot": (0, 0)}, E.SNAPSHOT_NOT_FOUND),
    (snapshot, {"position": -1}, E.POSITION_OUT_OF_RANGE),
    (snapshot, {"position": OFFSET_MAX}, E.POSITION_OUT_OF_RANGE),
    (snapshot, {"max_bytes": 0}, E.INVALID_REQUEST),
    (snapshot, {"replica": 1}, E.INVALID_REQUEST),
    # A voter
    (update_voter, {"voter": -1}, E.INVALID_REQUEST),
    (update_voter, {"directory": Uuid(bytes(16))}, E.INVALID_REQUEST),
    (update_voter, {"listeners": 0}, E.INVALID_REQUEST),
    (update_voter, {"lowest": 1, "highest": 0}, E.INVALID_REQUEST),
    # A request that was passed on
    (envelope, {"address": bytes(5)}, E.INVALID_REQUEST),
    (envelope, {"address": b""}, E.INVALID_REQUEST),
    (envelope, {"principal": None}, E.PRINCIPAL_DESERIALIZATION_FAILURE),
    (envelope, {"principal": b"\0\0\x7f"}, E.PRINCIPAL_DESERIALIZATION_FAILURE),
    (envelope, {"principal": b"\0\x09" + anonymous()[2:]}, E.PRINCIPAL_DESERIALIZATION_FAILURE),
    *((envelope, {"api_key": key}, E.INVALID_REQUEST) for key in (ENVELOPE, VOTE, FETCH, 999)),
    (envelope, {"version": 99}, E.UNSUPPORTED_VERSION),
    *((envelope, {"size": size}, E.UNSUPPORTED_VERSION) for size in (0, 3, 9, -1)),
    # A broker
    (heartbeat, {}, E.STALE_BROKER_EPOCH),
    (heartbeat, {"broker": 9}, E.STALE_BROKER_EPOCH),
    (registration, {"broker": 1}, E.DUPLICATE_BROKER_REGISTRATION),
    (registration, {}, E.INVALID_REGISTRATION),  # with the log dir of another
    (registration, {"log_dirs": []}, E.INVALID_REGISTRATION),
    (registration, {"log_dirs": [STRANGER], "listeners": 0}, E.INVALID_REGISTRATION),
    (registration, {"log_dirs": [STRANGER], "listeners": 2}, E.INVALID_REGISTRATION),
]


def errors(reply: Any) -> list[int]:
    """All that a reply tells."""
    found: list[int] = []
    for name, value in vars(reply).items():
        if name == "error_code":
            found.append(value)
        for item in value if isinstance(value, list) else [value]:
            if hasattr(item, "__dict__"):
                found += errors(item)
    return [code for code in found if code]


class InSomeEpoch(ControllerStage):
    """Its quorum has seen some elections."""

    def format(self, randomness) -> None:
        super().format(randomness)
        directory = f"{self.root}/{CLUSTER_METADATA_TOPIC}-0"
        self._disk.mkdir(directory)
        voters = [] if isinstance(self, DynamicControllerStage) else [1]
        ElectionFile(self._disk, directory).write(ElectionState(SOME_EPOCH), len(voters) == 0, voters)


class DynamicInSomeEpoch(InSomeEpoch, DynamicControllerStage): ...


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", [ControllerStage, DynamicControllerStage])
async def test_the_quorum_refuses_what_is_wrong_with_its_own_error(tmp_path: pathlib.Path, kind) -> None:
    stage = InSomeEpoch(tmp_path / "data") if kind is ControllerStage else DynamicInSomeEpoch(tmp_path / "data")
    await stage.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.port("CONTROLLER"))
    try:
        line = Line(stage, reader, writer)
        await stage.node.quorum._snapshotting.take()
        before = line.epoch
        for make, said, error in ROWS:
            reply = await line.ask(*MAKERS[make], make(line, **said))
            assert errors(reply) == [error], (make.__name__, said, reply)
        assert (line.epoch, stage.node.quorum.is_active) == (before, True)
        assert not stage.failures
    finally:
        writer.close()
        await stage.stop()
