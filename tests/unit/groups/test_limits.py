"""SEC-L10: what strangers can make a coordinator remember is finite, and each limit has its answer."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.groups import regex
from strandline.groups.classic.join_group import PROTOCOLS_MAX
from strandline.groups.consumer.heartbeat_validation import OWNED_PARTITIONS_MAX, SUBSCRIBED_TOPICS_MAX
from strandline.groups.offsets.offset_delete import OFFSETS_PER_REQUEST_MAX
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import MetadataImage
from strandline.metadata.replay import replay
from strandline.wire import messages
from tests.unit.groups.driver import Driver, config_of

JOIN, COMMIT, OFFSET_DELETE, HEARTBEAT = 11, 8, 47, 68
TOPIC_ID = Uuid(bytes(15) + b"t")


def image_with_topic() -> MetadataImage:
    partition = r.PartitionRecord(
        partition_id=0, topic_id=TOPIC_ID, replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0
    )
    return replay(MetadataImage(), [r.TopicRecord(name="t", topic_id=TOPIC_ID), partition], 2, 1)


def join(group_id: str, member_id: str = "", metadata: bytes = b"", protocols: int = 1) -> Any:
    request = messages.request(JOIN)
    return request(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[request.JoinGroupRequestProtocol(name=f"p{i}", metadata=metadata) for i in range(protocols)],
    )


def commit(group_id: str, partitions: int = 1, generation: int = -1) -> Any:
    request = messages.request(COMMIT)
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = request.OffsetCommitRequestTopic(name="t", partitions=[partition] * partitions)
    return request(group_id=group_id, generation_id_or_member_epoch=generation, topics=[topic])


def heartbeat(group_id: str, member_id: str = "m", epoch: int = 0, **fields: Any) -> Any:
    values = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": [], **fields}
    return messages.request(HEARTBEAT)(group_id=group_id, member_id=member_id, member_epoch=epoch, **values)


def code_of(driver: Driver, name: str, request: Any, version: int) -> ErrorCode:
    try:
        return driver.call(name, request, version).code
    except KafkaError as error:
        return error.code


def test_defaults_are_finite() -> None:
    config = config_of()
    assert config.group_max_size == config.group_consumer_max_size == 2_000
    assert config.group_coordinator_max_groups_per_partition == 5_000
    assert config.group_config_max_resources == 10_000
    assert config.group_consumer_max_regexes == 100


def test_groups_are_counted_whatever_makes_them() -> None:
    driver = Driver(image_with_topic(), group_coordinator_max_groups_per_partition="3")
    driver.call("join_group", join("classic"), 9)
    driver.call("consumer_group_heartbeat", heartbeat("consumer"), 1)
    driver.call("commit_offsets", commit("simple"), 9)
    assert sorted(driver.shard.groups) == ["classic", "consumer", "simple"]
    for name, request, version in (
        ("join_group", join("one more"), 9),
        ("consumer_group_heartbeat", heartbeat("one more"), 1),
        ("commit_offsets", commit("one more"), 9),
    ):
        assert code_of(driver, name, request, version) is ErrorCode.POLICY_VIOLATION
    assert len(driver.shard.groups) == 3
    # Those that there are go on; and who was a member of one that is no more hears that, not of the limit.
    assert code_of(driver, "join_group", join("classic"), 9) is ErrorCode.MEMBER_ID_REQUIRED
    assert driver.call("commit_offsets", commit("simple"), 9).response.topics[0].partitions[0].error_code == 0
    assert code_of(driver, "consumer_group_heartbeat", heartbeat("gone", epoch=3), 1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(driver, "commit_offsets", commit("gone", generation=3), 9) is ErrorCode.GROUP_ID_NOT_FOUND


def test_ids_that_nobody_comes_back_with_are_finite() -> None:
    """Each is remembered for a session; Kafka gives out any number of them."""
    driver = Driver(group_max_size="3")
    codes = [code_of(driver, "join_group", join("g"), 9) for _ in range(10)]
    assert codes == [ErrorCode.MEMBER_ID_REQUIRED] * 6 + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 4


@pytest.mark.parametrize(
    "request_", [join("g", protocols=PROTOCOLS_MAX + 1), join("g", metadata=bytes(600_000), protocols=2)]
)
def test_a_member_that_could_not_be_written_down_does_not_join(request_: Any) -> None:
    driver = Driver()
    assert code_of(driver, "join_group", request_, 9) is ErrorCode.INVALID_REQUEST
    assert not driver.shard.groups


def test_offsets_in_one_request() -> None:
    driver = Driver(image_with_topic())
    request = messages.request(OFFSET_DELETE)
    partitions = [request.OffsetDeleteRequestPartition(partition_index=i) for i in range(OFFSETS_PER_REQUEST_MAX + 1)]
    topic = request.OffsetDeleteRequestTopic(name="t", partitions=partitions)
    delete = request(group_id="g", topics=[topic])
    assert code_of(driver, "delete_offsets", delete, 0) is ErrorCode.INVALID_REQUEST


def test_patterns_of_one_group() -> None:
    driver = Driver(image_with_topic(), group_consumer_max_regexes="2")

    def subscribe(member_id: str, pattern: str) -> ErrorCode:
        fields = {"subscribed_topic_names": None, "subscribed_topic_regex": pattern}
        return code_of(driver, "consumer_group_heartbeat", heartbeat("g", member_id, **fields), 1)

    assert [subscribe(f"m{i}", pattern) for i, pattern in enumerate(("a.*", "b.*", "a.*", "c.*"))] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
    ]


def test_the_length_of_a_pattern() -> None:
    regex.check("a" * regex.PATTERN_CHARACTERS_MAX)
    with pytest.raises(KafkaError, match="more than 4096") as refused:
        regex.check("a" * (regex.PATTERN_CHARACTERS_MAX + 1))
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_what_a_heartbeat_may_name() -> None:
    driver = Driver(image_with_topic())
    names = [f"t{i}" for i in range(SUBSCRIBED_TOPICS_MAX + 1)]
    many = heartbeat("g", subscribed_topic_names=names)
    assert code_of(driver, "consumer_group_heartbeat", many, 1) is ErrorCode.INVALID_REQUEST
    Topic = messages.request(HEARTBEAT).TopicPartitions
    owned = [Topic(topic_id=TOPIC_ID, partitions=list(range(OWNED_PARTITIONS_MAX + 1)))]
    owning = heartbeat("g", epoch=1, topic_partitions=owned)
    assert code_of(driver, "consumer_group_heartbeat", owning, 1) is ErrorCode.INVALID_REQUEST
