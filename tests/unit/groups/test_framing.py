# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups import framing, offset_codec
from strandline.groups.framing import MalformedCoordinatorRecord, decode, encode
from strandline.groups.records import (
    BY_TYPE,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    SubscribedPartitionMetadata,
    SubscribedTopicMetadata,
    TopicPartition,
    TopicPartitions,
)
from strandline.ids import ZERO_UUID, Uuid
from strandline.wire.errors import MalformedRequest

ID = Uuid(bytes(range(16)))
OFFSET_KEY = OffsetCommitKey(group="group", topic="tøpic", partition=7)
GROUP_KEY = GroupMetadataKey(group="group")
MEMBER_KEY = ConsumerGroupMemberMetadataKey(group_id="group", member_id="m-1")


def offset(
    leader_epoch: int = 3, expire_timestamp: int = -1, topic_id: Uuid = ZERO_UUID, metadata: str = "métadata"
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=42,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=1700000000000,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )


def member(rebalance_timeout: int = 300000, group_instance_id: str | None = None) -> MemberMetadata:
    return MemberMetadata(
        member_id="m-1",
        group_instance_id=group_instance_id,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout=rebalance_timeout,
        session_timeout=45000,
        subscription=b"\1\2\3",
        assignment=b"\4\5",
    )


def group(*members: MemberMetadata, current_state_timestamp: int = -1) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader="m-1",
        current_state_timestamp=current_state_timestamp,
        members=members,
    )


def consumer_member(classic: ClassicMemberMetadata | None = None) -> ConsumerGroupMemberMetadataValue:
    return ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id="r",
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("a", "b"),
        subscribed_topic_regex="x.*",
        rebalance_timeout_ms=300000,
        server_assignor="uniform",
        classic_member_metadata=classic,
    )


# What GroupCoordinatorRecordSerde of Apache Kafka 4.3.1 makes of the same values: record, version, key, value.
KAFKA = [
    (OFFSET_KEY, offset(leader_epoch=-1), 0, "0001000567726f7570000674c3b870696300000007",
     "0000000000000000002a00096dc3a97461646174610000018bcfe56800"),
    (OFFSET_KEY, offset(leader_epoch=-1, expire_timestamp=1700000000005), 1, "0001000567726f7570000674c3b870696300000007",
     "0001000000000000002a00096dc3a97461646174610000018bcfe568000000018bcfe56805"),
    (OFFSET_KEY, offset(leader_epoch=-1), 2, "0001000567726f7570000674c3b870696300000007",
     "0002000000000000002a00096dc3a97461646174610000018bcfe56800"),
    (OFFSET_KEY, offset(), 3, "0001000567726f7570000674c3b870696300000007",
     "0003000000000000002a0000000300096dc3a97461646174610000018bcfe56800"),
    (OFFSET_KEY, offset(), 4, "0001000567726f7570000674c3b870696300000007",
     "0004000000000000002a000000030a6dc3a97461646174610000018bcfe5680000"),
    (OFFSET_KEY, offset(topic_id=ID), 4, "0001000567726f7570000674c3b870696300000007",
     "0004000000000000002a000000030a6dc3a97461646174610000018bcfe56800010010000102030405060708090a0b0c0d0e0f"),
    (OFFSET_KEY, offset(topic_id=ID, metadata="m" * 200), 4, "0001000567726f7570000674c3b870696300000007",
     "0004000000000000002a00000003c901" + "6d" * 200 + "0000018bcfe56800010010000102030405060708090a0b0c0d0e0f"),
    (OFFSET_KEY, None, 0, "0001000567726f7570000674c3b870696300000007", None),
    (GROUP_KEY, group(member(rebalance_timeout=-1)), 0, "0002000567726f7570",
     "00000008636f6e73756d657200000005000572616e676500036d2d310000000100036d2d310006636c69656e74000a2f3132372e302e302e310000afc8"
     "00000003010203000000020405"),
    (GROUP_KEY, group(member()), 1, "0002000567726f7570",
     "00010008636f6e73756d657200000005000572616e676500036d2d310000000100036d2d310006636c69656e74000a2f3132372e302e302e31"
     "000493e00000afc800000003010203000000020405"),
    (GROUP_KEY, group(member(), current_state_timestamp=1700000000001), 2, "0002000567726f7570",
     "00020008636f6e73756d657200000005000572616e676500036d2d310000018bcfe568010000000100036d2d310006636c69656e74"
     "000a2f3132372e302e302e31000493e00000afc800000003010203000000020405"),
    (GROUP_KEY, group(member(group_instance_id="i-1"), member(), current_state_timestamp=1700000000001), 3, "0002000567726f7570",
     "00030008636f6e73756d657200000005000572616e676500036d2d310000018bcfe568010000000200036d2d310003692d310006636c69656e74"
     "000a2f3132372e302e302e31000493e00000afc80000000301020300000002040500036d2d31ffff0006636c69656e74000a2f3132372e302e302e31"
     "000493e00000afc800000003010203000000020405"),
    (GROUP_KEY, group(member(group_instance_id="i-1"), member(), current_state_timestamp=1700000000001), 4, "0002000567726f7570",
     "000409636f6e73756d6572000000050672616e6765046d2d310000018bcfe5680103046d2d3104692d3107636c69656e740b2f3132372e302e302e31"
     "000493e00000afc80401020303040500046d2d310007636c69656e740b2f3132372e302e302e31000493e00000afc8040102030304050000"),
    (GROUP_KEY,
     GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=5, members=()),
     3, "0002000567726f7570", "0003000000000000ffffffff000000000000000500000000"),
    (ConsumerGroupMetadataKey(group_id="group"), ConsumerGroupMetadataValue(epoch=9), 0, "0003000567726f7570",
     "00000000000900"),
    (ConsumerGroupMetadataKey(group_id="group"), ConsumerGroupMetadataValue(epoch=9, metadata_hash=-2), 0, "0003000567726f7570",
     "000000000009010008fffffffffffffffe"),
    (ConsumerGroupPartitionMetadataKey(group_id="group"),
     ConsumerGroupPartitionMetadataValue(
         topics=(SubscribedTopicMetadata(topic_id=ID, topic_name="t", num_partitions=2,
                               partition_metadata=(SubscribedPartitionMetadata(partition=1, racks=("a",)),)),)),
     0, "0004000567726f7570", "000002000102030405060708090a0b0c0d0e0f0274000000020200000001020261000000"),
    (MEMBER_KEY, consumer_member(), 0, "0005000567726f757000036d2d31",
     "00000002720263032f68030261026204782e2a000493e008756e69666f726d01000100"),
    (MEMBER_KEY, consumer_member(ClassicMemberMetadata()), 0, "0005000567726f757000036d2d31",
     "00000002720263032f68030261026204782e2a000493e008756e69666f726d00"),
    (MEMBER_KEY,
     consumer_member(ClassicMemberMetadata(session_timeout_ms=45000,
                                           supported_protocols=(ClassicProtocol(name="range", metadata=b"\1\2"),))),
     0, "0005000567726f757000036d2d31",
     "00000002720263032f68030261026204782e2a000493e008756e69666f726d010011010000afc8020672616e67650301020000"),
    (ConsumerGroupTargetAssignmentMetadataKey(group_id="group"),
     ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=4, assignment_timestamp=77), 0, "0006000567726f7570",
     "000000000004010008000000000000004d"),
    (ConsumerGroupTargetAssignmentMemberKey(group_id="group", member_id="m-1"),
     ConsumerGroupTargetAssignmentMemberValue(topic_partitions=(TopicPartition(topic_id=ID, partitions=(0, 1)),)), 0,
     "0007000567726f757000036d2d31", "000002000102030405060708090a0b0c0d0e0f0300000000000000010000"),
    (ConsumerGroupCurrentMemberAssignmentKey(group_id="group", member_id="m-1"),
     ConsumerGroupCurrentMemberAssignmentValue(
         member_epoch=5, previous_member_epoch=4, state=1,
         assigned_partitions=(TopicPartitions(topic_id=ID, partitions=(0, 1), assignment_epochs=(4, 5)),),
         partitions_pending_revocation=(TopicPartitions(topic_id=ID, partitions=(2,)),)),
     0, "0008000567726f757000036d2d31",
     "000000000005000000040102000102030405060708090a0b0c0d0e0f030000000000000001010009030000000400000005"
     "02000102030405060708090a0b0c0d0e0f02000000020000"),
    (ConsumerGroupRegularExpressionKey(group_id="group", regular_expression="x.*"),
     ConsumerGroupRegularExpressionValue(topics=("x1",), version=12, timestamp=13), 0, "0010000567726f75700003782e2a",
     "000002037831000000000000000c000000000000000d00"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "version", "key_hex", "value_hex"), KAFKA)
def test_bytes_are_those_of_apache_kafka(key, value, version, key_hex, value_hex):
    record = CoordinatorRecord(key, value)
    written = (bytes.fromhex(key_hex), None if value_hex is None else bytes.fromhex(value_hex))

    assert encode(record, version) == written
    assert decode(*written) == record
    if value is not None and version == value.version_to_write:
        assert encode(record) == written
    assert decode(memoryview(written[0]), written[1] and memoryview(written[1])) == record


def test_every_type_of_ours_is_in_the_table_above():
    assert {type(key) for key, *_ in KAFKA} == set(BY_TYPE.values())
    assert set(BY_TYPE) == {1, 2, 3, 4, 5, 6, 7, 8, 16}


def test_an_offset_of_before_0_9_is_read_as_one_of_today():
    key, value = "0000000567726f757000017400000001", "0000000000000000000300016d0000000000000004"
    assert decode(bytes.fromhex(key), bytes.fromhex(value)) == CoordinatorRecord(
        OffsetCommitKey(group="group", topic="t", partition=1),
        OffsetCommitValue(offset=3, metadata="m", commit_timestamp=4),
    )


def test_what_other_kinds_of_groups_wrote_is_skipped():
    share = bytes.fromhex("000b000567726f7570"), bytes.fromhex("000000000001000000000000000000")
    assert decode(*share) is None
    assert decode(share[0], None) is None
    assert decode(b"\x7f\xff whatever", b"") is None


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (None, b"\0\0", "without a key"),
        (b"\0", b"\0\0", "key of 1 bytes"),
        (b"\0\2\0\1g", b"", "value of 0 bytes"),
        (b"\0\2\0\1g", b"\0\5", "GroupMetadataValue with unknown version 5"),
        (b"\0\1\0\1g\0\1t\0\0\0\1", b"\xff\xff", "OffsetCommitValue with unknown version -1"),
        (b"\0\1\0\1g\0\1t\0\0\0\1", b"\0\4\0\0", "the bytes end here"),
        (b"\0\1\0\1g\0\1t\0\0", b"\0\4" + bytes(22), "the bytes end here"),
        (b"\0\1\0\1\xff\0\1t\0\0\0\1", None, "not UTF-8"),
    ],
)
def test_what_can_not_be_a_record_of_ours_is_refused(key, value, says):
    with pytest.raises(MalformedRequest, match=says):
        decode(key, value)


def test_a_malformed_record_is_a_malformed_request():
    assert issubclass(MalformedCoordinatorRecord, MalformedRequest)


# Any value of any type, in any of its versions


int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
names = st.text(st.characters(codec="utf-8"), max_size=200)
ids = st.binary(min_size=16, max_size=16).map(Uuid)
offset_keys = st.builds(OffsetCommitKey, group=names, topic=names, partition=int32)
offset_values = st.builds(
    OffsetCommitValue,
    offset=int64,
    leader_epoch=int32,
    metadata=names,
    commit_timestamp=int64,
    topic_id=ids | st.just(ZERO_UUID),
)
members = st.builds(
    MemberMetadata,
    member_id=names,
    group_instance_id=st.none() | names,
    client_id=names,
    client_host=names,
    rebalance_timeout=int32,
    session_timeout=int32,
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=20),
)
group_values = st.builds(
    GroupMetadataValue,
    protocol_type=names,
    generation=int32,
    protocol=st.none() | names,
    leader=st.none() | names,
    current_state_timestamp=int64,
    members=st.lists(members, max_size=3).map(tuple),
)
topic_partitions = st.builds(
    TopicPartitions,
    topic_id=ids,
    partitions=st.lists(int32, max_size=3).map(tuple),
    assignment_epochs=st.none() | st.lists(int32, max_size=3).map(tuple),
)
assignments = st.builds(
    ConsumerGroupCurrentMemberAssignmentValue,
    member_epoch=int32,
    previous_member_epoch=int32,
    state=st.integers(-128, 127),
    assigned_partitions=st.lists(topic_partitions, max_size=3).map(tuple),
    partitions_pending_revocation=st.lists(topic_partitions, max_size=3).map(tuple),
)


def test_what_a_version_does_not_have_is_read_as_not_given():
    full = group(member(group_instance_id="i-1"), current_state_timestamp=9)
    assert decode(*encode(CoordinatorRecord(GROUP_KEY, full), 0)) == CoordinatorRecord(
        GROUP_KEY, group(member(rebalance_timeout=-1))
    )
    assert decode(
        *encode(CoordinatorRecord(OFFSET_KEY, offset(topic_id=ID, expire_timestamp=8)), 3)
    ) == CoordinatorRecord(OFFSET_KEY, offset())


@given(offset_keys, offset_values, st.sampled_from(OffsetCommitValue.VERSIONS))
def test_offsets_survive_each_version(key, value, version):
    written = encode(CoordinatorRecord(key, value), version)
    found = decode(*written)
    assert found is not None
    assert encode(found, version) == written
    if version == value.version_to_write:
        assert found == CoordinatorRecord(key, value)


@given(group_values, st.sampled_from(GroupMetadataValue.VERSIONS))
def test_groups_survive_each_version(value, version):
    written = encode(CoordinatorRecord(GROUP_KEY, value), version)
    found = decode(*written)
    assert found is not None
    assert encode(found, version) == written
    if version >= value.version_to_write:
        assert found == CoordinatorRecord(GROUP_KEY, value)


@given(assignments)
def test_assignments_survive(value):
    record = CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"), value)
    assert decode(*encode(record)) == record


@given(offset_keys, offset_values)
def test_offsets_are_written_by_hand_as_the_general_codec_writes_them(key, value):
    record = CoordinatorRecord(key, value)
    general = encode(record, 4)
    written = offset_codec.encode(record)
    assert written in (general, None)
    assert offset_codec.decode(*general) in (record, None)
    assert (written is None) == (len(value.metadata.encode()) > offset_codec.METADATA_SIZE_MAX)
    assert (offset_codec.decode(*general) is None) == (written is None)


def general(key: bytes, value: bytes) -> CoordinatorRecord:
    """What the general codec reads."""
    found = framing._key_codec(OffsetCommitKey.TYPE)[0].decode(key, framing.HEAD_SIZE)[0]
    return CoordinatorRecord(
        found, framing._value_codec(OffsetCommitKey.TYPE, 4)[0].decode(value, framing.HEAD_SIZE)[0]
    )


def damaged(data: bytes, changes: list[tuple[int, int]], end: int) -> bytes:
    """With other bytes, and another end; what comes first is left, or it would be of another type."""
    changed = bytearray(data)
    for position, byte in changes:
        changed[2 + position % (len(data) - 2)] = byte
    return bytes(changed[: len(data) + end]) + bytes(max(end, 0))


byte_changes = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from([0, 1, 2, 16, 127, 128, 255]) | st.integers(0, 255)), max_size=2
)
short_names = st.text(st.characters(codec="ascii"), max_size=4)


@settings(max_examples=200)
@given(
    st.builds(OffsetCommitKey, group=short_names, topic=short_names, partition=int32),
    st.builds(
        OffsetCommitValue,
        offset=int64,
        metadata=short_names,
        commit_timestamp=int64,
        topic_id=ids | st.just(ZERO_UUID),
    ),
    byte_changes,
    byte_changes,
    st.sampled_from([0, 0, -1, 1, 18, -18]),
)
def test_damaged_offsets_are_read_by_hand_as_the_general_codec_reads_them_or_refused(
    key, value, key_changes, value_changes, end
):
    key_bytes, value_bytes = encode(CoordinatorRecord(key, value))
    assert value_bytes is not None
    written = damaged(key_bytes, key_changes, 0), damaged(value_bytes, value_changes, end)
    try:
        expected = general(*written)
    except MalformedRequest:
        assert offset_codec.decode(*written) is None
        with pytest.raises(MalformedRequest):
            decode(*written)
    else:
        assert offset_codec.decode(*written) in (expected, None)
        assert decode(*written) == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\1\0\0\0\0\0\0\0\1", b"\0\4" + bytes(12) + b"\0" + bytes(8)),  # metadata of null
        (b"\0\1\0\0\0\0\0\0\0\1", b"\0\4" + bytes(12) + b"\x80" + bytes(127 + 9)),  # a size of two bytes
        (b"\0\1\0\0\0\0\0\0\0\1", b"\0\4" + bytes(12) + b"\1" + bytes(8) + b"\1\1\x10" + bytes(16)),  # another tag
        (b"\0\1\0\0\0\0\0\0\0\1", b"\0\4" + bytes(12) + b"\1" + bytes(8) + b"\0" + bytes(18)),  # bytes after its end
        (b"\0\1\0\0\0\0\0\0\0\1", b"\0\4" + bytes(12) + b"\1" + bytes(8) + b"\1\1\0"),  # a tag that is new
        (b"\0\1\xff\xfe\0\0\0\0\0\1", b"\0\4" + bytes(12) + b"\1" + bytes(9)),  # a group of -2 bytes
        (b"\0\1\0\0\xff\xff\0\0\0\1", b"\0\4" + bytes(12) + b"\1" + bytes(9)),  # a topic of null
    ],
)
def test_what_is_out_of_the_ordinary_is_left_to_the_general_codec(key, value):
    assert offset_codec.decode(key, value) is None
