"""Every request and answer of the quorum, in every version, from Raft to bytes and back to Raft."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type, var-annotated"

from __future__ import annotations

import pytest

from strandline.api import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch_metadata_log,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from strandline.api.quorum import metadata_partition
from strandline.errors import ErrorCode
from strandline.ids import ZERO_UUID, Uuid
from strandline.raft.messages import (
    Address,
    AddVoterRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    QuorumEpochResponse,
    RaftFetchRequest,
    RaftFetchResponse,
    RemoveVoterRequest,
    ReplicaKey,
    UpdateVoterRequest,
    VoterChangeResponse,
    VoteRequest,
    VoteResponse,
)
from strandline.wire import messages

from .quorum_member import CLUSTER_ID, OTHER_CLUSTER, RecordingMember, ask, received

ID = Uuid(bytes(range(16)))
ME, PEER = ReplicaKey(1, ID), ReplicaKey(2, Uuid(bytes(range(1, 17))))
ENDPOINTS = {"CONTROLLER": Address("n2", 9093), "OTHER": Address("n2", 19093)}
LEADER = Address("n3", 9093)

CASES = [
    (vote, VoteRequest(ME, 5, PEER, 4, 17, True), VoteResponse(ErrorCode.NONE, 5, -1, True)),
    (vote, VoteRequest(ME, 5, PEER, 4, 17, False), VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, 7, 3, False, LEADER)),
    (
        begin_quorum_epoch,
        BeginQuorumEpochRequest(ME, 5, 2, ENDPOINTS),
        QuorumEpochResponse(ErrorCode.INVALID_VOTER_KEY, 5, 3, LEADER),
    ),
    (
        end_quorum_epoch,
        EndQuorumEpochRequest(5, 2, (PEER, ME), ENDPOINTS),
        QuorumEpochResponse(ErrorCode.NONE, 5, 3, LEADER),
    ),
    (
        fetch_metadata_log,
        RaftFetchRequest(PEER, 5, 17, 4, 0.5, 12, 1000),
        RaftFetchResponse(ErrorCode.NONE, 5, 3, 17, 2, records=b"0123456789", leader_address=LEADER),
    ),
    (
        fetch_metadata_log,
        RaftFetchRequest(PEER, 5, 17, 4, 0.0, -1, 1000),
        RaftFetchResponse(ErrorCode.NONE, 5, 3, 17, 2, diverging_epoch=OffsetAndEpoch(9, 3), leader_address=LEADER),
    ),
    (
        fetch_metadata_log,
        RaftFetchRequest(PEER, 5, 0, 0, 0.0, 0, 1000),
        RaftFetchResponse(ErrorCode.NONE, 5, 3, 17, 2, snapshot_id=OffsetAndEpoch(12, 4), leader_address=LEADER),
    ),
    (
        fetch_snapshot,
        FetchSnapshotRequest(PEER, 5, OffsetAndEpoch(12, 4), 100, 1000),
        FetchSnapshotResponse(ErrorCode.NONE, 5, 3, OffsetAndEpoch(12, 4), 300, 100, b"chunk", LEADER),
    ),
    (add_raft_voter, AddVoterRequest(PEER, ENDPOINTS, 30.0, False), VoterChangeResponse(ErrorCode.NONE)),
    (
        remove_raft_voter,
        RemoveVoterRequest(PEER),
        VoterChangeResponse(ErrorCode.VOTER_NOT_FOUND, "no such voter"),
    ),
    (
        update_raft_voter,
        UpdateVoterRequest(5, PEER, ENDPOINTS, range(2)),
        QuorumEpochResponse(ErrorCode.NONE, 5, 3, LEADER),
    ),
]


def as_version_has_it(api, version, value):
    """What is left of a request or an answer in a version that does not know all of it."""
    match value:
        case VoteRequest() if version < 2:
            value = value._replace(pre_vote=False)
            return without_directories(value, "candidate", "voter") if version < 1 else value
        case BeginQuorumEpochRequest() if version < 1:
            return without_directories(value, "voter")._replace(leader_endpoints={})
        case EndQuorumEpochRequest() if version < 1:
            keys = tuple(ReplicaKey(key.id) for key in value.preferred_candidates)
            return value._replace(preferred_candidates=keys, leader_endpoints={})
        case RaftFetchRequest():
            if version < 18:
                value = value._replace(high_watermark=2**63 - 1)
            if version < 17:
                value = without_directories(value, "replica")
            if version < 12:
                value = value._replace(last_fetched_epoch=-1)
            return value._replace(epoch=-1) if version < 9 else value
        case RaftFetchResponse():
            if version < 16:
                value = value._replace(leader_address=None)
            if version < 12:
                value = value._replace(diverging_epoch=None, snapshot_id=None, epoch=-1, leader_id=-1)
            return value._replace(log_start_offset=-1) if version < 5 else value
        case FetchSnapshotRequest() if version < 1:
            return without_directories(value, "replica")
        case VoteResponse() | FetchSnapshotResponse() if version < 1:
            return value._replace(leader_address=None)
        case QuorumEpochResponse() if version < 1 and api is not update_raft_voter:
            return value._replace(leader_address=None)
        case AddVoterRequest() if version < 1:
            return value._replace(ack_when_committed=True)
    return value


def without_directories(value, *fields):
    return value._replace(**{field: getattr(value, field)._replace(directory_id=ZERO_UUID) for field in fields})


@pytest.mark.parametrize(
    ("api", "request_", "answer", "version"),
    [(api, request, answer, version) for api, request, answer in CASES for version in api.VERSIONS],
)
async def test_there_and_back(broker, api, request_, answer, version):
    member = RecordingMember(answer)
    reply = ask(broker, api, version, api.write_request(request_, CLUSTER_ID), member)
    assert member.requests == [as_version_has_it(api, version, request_)]
    assert api.read_response(reply) == as_version_has_it(api, version, answer)


PARTITION_APIS = [vote, begin_quorum_epoch, end_quorum_epoch, fetch_metadata_log, fetch_snapshot]
REQUESTS = {api: request for api, request, _ in CASES}


def reshaped(api, change):
    """A request about other partitions than the metadata's."""
    request = api.write_request(REQUESTS[api], CLUSTER_ID)
    topic = request.topics[0]
    match change:
        case "no topics":
            request.topics = []
        case "no partitions":
            topic.partitions = []
        case "two topics":
            request.topics = [topic, topic]
        case "two partitions":
            topic.partitions = [topic.partitions[0], topic.partitions[0]]
        case "other topic":
            for name in {"topic", "topic_name", "name"} & topic._fields.keys():
                setattr(topic, name, "other")
            if "topic_id" in topic._fields:
                topic.topic_id = Uuid(bytes(range(16)))
        case "other partition":
            index = next(iter({"partition", "partition_index"} & topic.partitions[0]._fields.keys()))
            setattr(topic.partitions[0], index, 1)
    return request


CHANGES = ["no topics", "no partitions", "two topics", "two partitions", "other topic", "other partition"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("api", PARTITION_APIS)
async def test_what_is_not_about_the_metadata_partition_does_not_reach_the_quorum(broker, api, change):
    member = RecordingMember()
    version = api.VERSIONS[-1]
    reply = ask(broker, api, version, reshaped(api, change), member)
    assert not member.requests
    if api is fetch_snapshot and change.startswith("other"):
        assert reply.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        assert reply.error_code == ErrorCode.INVALID_REQUEST
    with pytest.raises(metadata_partition.RefusedByPeer):
        api.read_response(reply)


@pytest.mark.parametrize(("api", "request_"), REQUESTS.items())
async def test_other_clusters_are_refused(broker, api, request_):
    member = RecordingMember()
    version = api.VERSIONS[-1]
    reply = ask(broker, api, version, api.write_request(request_, OTHER_CLUSTER), member)
    assert (reply.error_code, member.requests) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])


@pytest.mark.parametrize(("api", "request_"), REQUESTS.items())
async def test_whoever_does_not_say_its_cluster_means_this_one(broker, api, request_):
    member = RecordingMember()
    message = api.write_request(request_, CLUSTER_ID)
    message.cluster_id = None
    ask(broker, api, api.VERSIONS[-1], message, member)
    assert member.requests == [request_]


@pytest.mark.parametrize(("api", "request_", "answer"), CASES)
async def test_an_answer_may_come_later_or_never(broker, api, request_, answer):
    member = RecordingMember()
    version = api.VERSIONS[-1]
    later = ask(broker, api, version, api.write_request(request_, CLUSTER_ID), member)
    delivered = []
    later.deliver_to(delivered.append)
    member.answer(answer)
    assert api.read_response(received(api, version, delivered[0])) == answer

    gone = ask(broker, api, version, api.write_request(request_, CLUSTER_ID), member)
    gone.cancel()
    assert member.cancelled == [member.answer]
    member.answer(answer)  # too late: nobody is there


async def test_version_0_means_whom_it_reaches(broker):
    for api in (vote, begin_quorum_epoch):
        member = RecordingMember()
        ask(broker, api, 0, api.write_request(REQUESTS[api], CLUSTER_ID), member)
        assert member.requests[0].voter == ReplicaKey(1)


@pytest.mark.parametrize("api", [add_raft_voter, remove_raft_voter, update_raft_voter])
async def test_a_voter_has_an_id_and_a_directory(broker, api):
    for changes in ({"voter_id": -1}, {"voter_directory_id": ZERO_UUID}, {"listeners": []}):
        message = api.write_request(REQUESTS[api], CLUSTER_ID)
        if not changes.keys() <= message._fields.keys():
            continue
        for name, value in changes.items():
            setattr(message, name, value)
        member = RecordingMember()
        reply = ask(broker, api, api.VERSIONS[-1], message, member)
        assert (reply.error_code, member.requests) == (ErrorCode.INVALID_REQUEST, [])


async def test_a_voter_knows_some_kraft_version(broker):
    message = update_raft_voter.write_request(REQUESTS[update_raft_voter], CLUSTER_ID)
    message.k_raft_version_feature.min_supported_version = 2
    member = RecordingMember()
    reply = ask(broker, update_raft_voter, 0, message, member)
    assert reply.error_code == ErrorCode.INVALID_REQUEST
    assert (reply.current_leader.leader_id, reply.current_leader.leader_epoch) == (3, 7)


def test_every_version_is_served():
    for api in (*REQUESTS, vote):
        assert messages.request_family(api.KEY).versions == api.VERSIONS
