"""Every message in every version: to bytes, back, and through kio's own reader and writer."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type, attr-defined, call-arg, index"

from __future__ import annotations

import io
import random

import pytest

from strandline.ids import ZERO_UUID
from strandline.wire import messages, schemas
from strandline.wire.errors import MalformedRequest
from strandline.wire.primitives import REQUEST_OBJECTS_MAX

from .samples import sample

FAMILIES = [
    *((messages.request_family, key) for key in schemas.api_keys()),
    *((messages.response_family, key) for key in schemas.api_keys()),
    *((messages.data_family, name) for name in sorted(schemas.DATA_NAMES)),
]


@pytest.mark.parametrize(("find", "key"), FAMILIES, ids=[f"{find.__name__} {key}" for find, key in FAMILIES])
def test_every_version_comes_back_as_it_was_and_kio_agrees_on_the_bytes(find, key):
    from kio.serial import entity_reader, entity_writer

    family = find(key)
    chance = random.Random(f"{find.__name__} {key}")
    for version in family.versions:
        codec = family.codec(version)
        message = sample(family.struct(version), chance)
        data = codec.encode(message)
        decoded, end = codec.decode(memoryview(b"--" + data + b"rest"), 2)
        assert decoded == message
        assert end == 2 + len(data)

        kio_class = family._schema.kio_class(version)
        kio_message, size = entity_reader(kio_class)(data, 0)
        assert size == len(data)
        buffer = io.BytesIO()
        entity_writer(kio_class)(buffer, kio_message)
        assert buffer.getvalue() == data, version


def test_bytes_of_a_known_message():
    CreateTopics = messages.request(19)
    message = CreateTopics(
        topics=[CreateTopics.CreatableTopic(name="t", num_partitions=3, replication_factor=2)], timeout_ms=5
    )
    assert messages.encode_request(19, 5, message) == (
        b"\x02"
        + b"\x02t"
        + b"\x00\x00\x00\x03"
        + b"\x00\x02"
        + b"\x01"
        + b"\x01"
        + b"\x00"
        + b"\x00\x00\x00\x05"
        + b"\x00"
        + b"\x00"
    )
    assert messages.encode_request(19, 4, message) == (
        b"\0\0\0\x01" + b"\0\x01t" + b"\0\0\0\x03" + b"\0\x02" + b"\0\0\0\0" + b"\0\0\0\0" + b"\0\0\0\x05" + b"\0"
    )


def test_one_class_serves_all_versions():
    Metadata = messages.response(3)
    message = Metadata(throttle_time_ms=7, topics=[Metadata.MetadataResponseTopic(name="t")])
    old = messages.decode_response(3, 0, messages.encode_response(3, 0, message))
    assert type(old) is Metadata
    assert old.throttle_time_ms == 0, "version 0 does not have it"
    assert old.topics[0].topic_id == ZERO_UUID
    assert old.topics[0].topic_authorized_operations == -(1 << 31)
    assert messages.decode_response(3, 12, messages.encode_response(3, 12, message)).throttle_time_ms == 7


def test_structs_and_fields_that_only_old_versions_have_are_found():
    OffsetFetch = messages.request(9)
    message = OffsetFetch(
        group_id="g", topics=[OffsetFetch.OffsetFetchRequestTopic(name="t", partition_indexes=[1, 2])]
    )
    decoded = messages.decode_request(9, 1, messages.encode_request(9, 1, message))
    assert (decoded.group_id, decoded.topics[0].partition_indexes) == ("g", [1, 2])
    assert decoded.groups == []


def test_names_that_no_version_has_are_refused():
    Heartbeat = messages.request(12)
    with pytest.raises(TypeError, match="HeartbeatRequest has no grup_id"):
        Heartbeat(grup_id="g")
    with pytest.raises(AttributeError, match="HeartbeatRequest has no grup_id"):
        _ = Heartbeat().grup_id
    with pytest.raises(AttributeError, match="HeartbeatRequest has no struct Nothing"):
        _ = Heartbeat.Nothing


def test_each_instance_has_its_own_empty_list_and_struct():
    Fetch = messages.response(1)
    one, two = Fetch(), Fetch()
    one.responses.append(1)
    assert two.responses == []
    partition, other = Fetch.PartitionData(), Fetch.PartitionData()
    partition.current_leader.leader_id = 5
    assert other.current_leader.leader_id == -1


def test_messages_compare_and_print_by_their_fields():
    Heartbeat = messages.request(12)
    assert Heartbeat(group_id="g") == Heartbeat(group_id="g", member_id="")
    assert Heartbeat(group_id="g") != Heartbeat(group_id="h")
    assert Heartbeat(group_id="g") != "g"
    assert repr(Heartbeat(group_id="g")) == "HeartbeatRequest(group_id='g')"


def test_a_tagged_field_is_sent_only_if_it_differs_from_its_default():
    Fetch = messages.request(1)
    plain, state = Fetch(), Fetch(replica_state=Fetch.ReplicaState(replica_id=3, replica_epoch=9))
    size = len(messages.encode_request(1, 15, plain))
    data = messages.encode_request(1, 15, state)
    assert len(data) == size + 2 + 4 + 8 + 1
    assert messages.decode_request(1, 15, data).replica_state.replica_epoch == 9
    assert messages.decode_request(1, 15, messages.encode_request(1, 15, plain)).replica_state.replica_id == -1


def test_buffers_are_written_without_conversion_and_read_as_bytes():
    Sync = messages.request(14)
    assignment = Sync.SyncGroupRequestAssignment(member_id="m", assignment=memoryview(bytearray(b"abc")))
    decoded = messages.decode_request(14, 5, messages.encode_request(14, 5, Sync(assignments=[assignment])))
    assert decoded.assignments[0].assignment == b"abc"
    assert type(decoded.assignments[0].assignment) is bytes


def test_what_is_wrong_with_our_own_message_names_the_field():
    Heartbeat = messages.request(12)
    with pytest.raises(Exception) as caught:
        messages.encode_request(12, 4, Heartbeat(generation_id="not a number"))
    assert caught.value.__notes__ == ["while writing HeartbeatRequest version 4, generation_id..member_id"]


def test_unknown_apis_and_versions_are_lookup_errors():
    with pytest.raises(LookupError):
        messages.request(4)
    with pytest.raises(LookupError):
        messages.decode_request(12, 99, b"")


@pytest.mark.parametrize(("find", "key"), FAMILIES, ids=[f"{find.__name__} {key}" for find, key in FAMILIES])
def test_in_slices_every_message_is_read_and_written_the_same(find, key):
    """A large request is read in slices (SEC-L2), by a function of its own."""
    family = find(key)
    chance = random.Random(f"{find.__name__} {key}")
    for version in family.versions:
        codec = family.codec(version)
        message = sample(family.struct(version), chance)
        data = codec.encode(message)
        assert finished(codec.encode_in_slices(message)) == data
        read, position, objects = finished(codec.decode_in_slices(b"--" + data + b"rest", 2))
        assert (read, position) == (message, 2 + len(data))
        assert codec.decode_counted(data, 0, REQUEST_OBJECTS_MAX) == (message, len(data), objects)
        assert objects >= codec.struct.objects
        if data:
            with pytest.raises(MalformedRequest) as at_once:
                codec.decode(data[:-1])
            with pytest.raises(MalformedRequest) as sliced:
                finished(codec.decode_in_slices(data[:-1]))
            assert str(sliced.value) == str(at_once.value)


def finished(work):
    while True:
        try:
            assert next(work) == 0
        except StopIteration as stop:
            return stop.value
