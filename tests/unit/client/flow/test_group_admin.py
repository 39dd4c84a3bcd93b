"""Administration of groups, put to a made-up broker over real sockets:
routed, tried again, and told in Kafka's words.
"""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

from typing import Any

import pytest

from strandline.client.core.group.subscription import encode_assignment
from strandline.client.flow.group_descriptions import GroupListing, OffsetAndMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages

from .test_cluster_admin import Answer, Node, through_a_broker

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_GROUPS, LIST_GROUPS = 8, 9, 10, 15, 16
DELETE_GROUPS, OFFSET_DELETE, CONSUMER_GROUP_DESCRIBE = 42, 47, 69
NOT_COORDINATOR, NOT_FOUND = ErrorCode.NOT_COORDINATOR, ErrorCode.GROUP_ID_NOT_FOUND


def coordinator(nodes: list[Node], *codes: ErrorCode) -> dict[int, Answer]:
    """These codes one after another, then the node."""
    left = list(codes)

    def find(request: Any) -> Any:
        R = messages.response(FIND_COORDINATOR)
        code = left.pop(0) if left else ErrorCode.NONE
        node = nodes[0]
        return R(
            coordinators=[
                R.Coordinator(key=key, node_id=1, host=node.host, port=node.port, error_code=code)
                for key in request.coordinator_keys
            ]
        )

    return {FIND_COORDINATOR: find}


class Room:
    """One broker that is everybody's coordinator."""

    def __init__(self, answers: dict[int, Answer], *codes: ErrorCode) -> None:
        self._nodes: list[Node] = []
        self._open = through_a_broker({**answers, **coordinator(self._nodes, *codes)})

    def __enter__(self) -> Any:
        admin, node = self._open.__enter__()
        self._nodes.append(node)
        return admin, node

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)


def test_groups_are_listed_in_order_and_filtered_even_if_the_broker_does_not():
    def listing(_: Any) -> Any:
        R = messages.response(LIST_GROUPS)
        rows = [
            ("b", "consumer", "Stable", "classic"),
            ("a", "consumer", "Empty", "consumer"),
            ("s", "", "Empty", "classic"),
        ]
        names = ("group_id", "protocol_type", "group_state", "group_type")
        return R(groups=[R.ListedGroup(**dict(zip(names, row, strict=True))) for row in rows])

    with Room({LIST_GROUPS: listing}) as (admin, node):
        a, b = GroupListing("a", "consumer", "Empty", "Consumer"), GroupListing("b", "consumer", "Stable", "Classic")
        simple = GroupListing("s", "", "Empty", "Classic")
        assert admin.list_groups() == [a, b, simple]
        assert admin.list_groups(states=["stable"]) == [b]
        assert admin.list_groups(types=["Classic"], states=["Empty", "Dead"]) == [simple]
        assert node.of(LIST_GROUPS)[1].states_filter == ["stable"]


def test_a_broker_that_loads_its_groups_is_asked_again():
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]
    with Room({LIST_GROUPS: lambda _: messages.response(LIST_GROUPS)(error_code=codes.pop(0))}) as (admin, _):
        assert admin.list_groups() == []
        assert codes == []


def consumer_groups(request: Any) -> Any:
    R = messages.response(CONSUMER_GROUP_DESCRIBE)
    partitions = R.Assignment(
        topic_partitions=[R.TopicPartitions(topic_name="t", partitions=[1, 0]), R.TopicPartitions(topic_name="s")]
    )
    member = R.Member(
        member_id="m",
        member_epoch=4,
        client_id="c",
        client_host="/127.0.0.1",
        subscribed_topic_names=["t"],
        assignment=partitions,
        target_assignment=partitions,
        member_type=0,
    )
    known = R.DescribedGroup(
        group_id="new",
        group_state="Reconciling",
        group_epoch=5,
        assignment_epoch=4,
        assignor_name="uniform",
        members=[member],
    )
    return R(
        groups=[
            known
            if group_id == "new"
            else R.DescribedGroup(group_id=group_id, error_code=NOT_FOUND, error_message="no")
            for group_id in request.group_ids
        ]
    )


def classic_groups(request: Any) -> Any:
    R = messages.response(DESCRIBE_GROUPS)
    member = R.DescribedGroupMember(
        member_id="m",
        group_instance_id="i",
        client_id="c",
        client_host="/127.0.0.1",
        member_assignment=encode_assignment([("t", 2)]),
    )
    known = R.DescribedGroup(
        group_id="old", group_state="Stable", protocol_type="consumer", protocol_data="range", members=[member]
    )
    return R(
        groups=[
            known if group_id == "old" else R.DescribedGroup(group_id=group_id, error_code=NOT_FOUND)
            for group_id in request.groups
        ]
    )


def test_groups_of_either_protocol_are_described_and_those_that_are_none_are_named():
    answers = {CONSUMER_GROUP_DESCRIBE: consumer_groups, DESCRIBE_GROUPS: classic_groups}
    with Room(answers, ErrorCode.COORDINATOR_NOT_AVAILABLE) as (admin, node):
        described = admin.describe_groups(["new", "old", "none"])
        assert node.of(FIND_COORDINATOR)[-1].coordinator_keys == ["new", "old", "none"]
        assert node.of(DESCRIBE_GROUPS)[0].groups == ["old", "none"]
    new, old, none = described["new"], described["old"], described["none"]
    assert (new.type, new.state, new.assignor, new.group_epoch, new.assignment_epoch) == (
        "Consumer",
        "Reconciling",
        "uniform",
        5,
        4,
    )
    (member,) = new.members
    assert member.assignment == member.target_assignment == (("t", 0), ("t", 1))
    assert (member.member_epoch, member.is_classic, member.subscribed_topics) == (4, True, ("t",))
    assert (old.type, old.state, old.assignor, old.group_epoch, old.is_simple) == (
        "Classic",
        "Stable",
        "range",
        None,
        False,
    )
    assert old.coordinator.node_id == 1
    assert (old.members[0].group_instance_id, old.members[0].assignment) == ("i", (("t", 2),))
    assert isinstance(none, KafkaError)
    assert none.code is NOT_FOUND


def test_a_broker_that_knows_only_classic_groups_describes_those():
    with Room({DESCRIBE_GROUPS: classic_groups}) as (admin, _):
        assert admin.describe_groups(["old"])["old"].assignor == "range"


def test_offsets_of_several_groups_come_at_once_and_a_coordinator_that_moved_is_found():
    codes = [NOT_COORDINATOR, ErrorCode.NONE]

    def fetch(request: Any) -> Any:
        R = messages.response(OFFSET_FETCH)
        code = codes.pop(0)
        topic = R.OffsetFetchResponseTopics(
            name="t", partitions=[R.OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata="m")]
        )
        return R(
            groups=[
                R.OffsetFetchResponseGroup(
                    group_id=g.group_id, error_code=code if g.group_id == "g" else 0, topics=[topic] if not code else []
                )
                for g in request.groups
            ]
        )

    with Room({OFFSET_FETCH: fetch}) as (admin, node):
        offsets = admin.list_group_offsets({"g": None, "h": [("t", 1)]})
        assert offsets == {"g": {("t", 0): OffsetAndMetadata(5, -1, "m")}, "h": {}}
        asked = node.of(OFFSET_FETCH)
        assert [g.group_id for g in asked[0].groups] == ["g", "h"]
        assert [g.group_id for g in asked[1].groups] == ["g"], "the other had its answer"


def test_altered_offsets_are_answered_for_each_partition():
    rounds = [[NOT_COORDINATOR, NOT_COORDINATOR], [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]

    def commit(request: Any) -> Any:
        R = messages.response(OFFSET_COMMIT)
        codes = rounds.pop(0)
        return R(
            topics=[
                R.OffsetCommitResponseTopic(
                    name=topic.name, partitions=[R.OffsetCommitResponsePartition(partition_index=0, error_code=code)]
                )
                for topic, code in zip(request.topics, codes, strict=True)
            ]
        )

    with Room({OFFSET_COMMIT: commit}) as (admin, node):
        answers = admin.alter_group_offsets("g", {("t", 0): OffsetAndMetadata(3), ("u", 0): OffsetAndMetadata(4)})
        assert answers["t", 0] is None
        assert isinstance(answers["u", 0], KafkaError)
        sent = node.of(OFFSET_COMMIT)[1]
        assert (sent.member_id, sent.generation_id_or_member_epoch) == ("", -1)
        assert [topic.name for topic in sent.topics] == ["t", "u"]


def test_offsets_are_deleted_unless_somebody_subscribes():
    def delete(request: Any) -> Any:
        R = messages.response(OFFSET_DELETE)
        partition = R.OffsetDeleteResponsePartition(partition_index=0, error_code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        return R(topics=[R.OffsetDeleteResponseTopic(name=request.topics[0].name, partitions=[partition])])

    with Room({OFFSET_DELETE: delete}) as (admin, _):
        (answer,) = admin.delete_group_offsets("g", [("t", 0)]).values()
        assert answer.code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    refused = {OFFSET_DELETE: lambda _: messages.response(OFFSET_DELETE)(error_code=NOT_FOUND)}
    with Room(refused) as (admin, _), pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        admin.delete_group_offsets("g", [("t", 0)])


def test_groups_are_deleted_each_with_its_answer():
    def delete(request: Any) -> Any:
        R = messages.response(DELETE_GROUPS)
        codes = {"busy": ErrorCode.NON_EMPTY_GROUP}
        return R(results=[R.DeletableGroupResult(group_id=g, error_code=codes.get(g, 0)) for g in request.groups_names])

    with Room({DELETE_GROUPS: delete}) as (admin, _):
        answers = admin.delete_groups(["g", "busy"])
        assert answers["g"] is None
        assert answers["busy"].code is ErrorCode.NON_EMPTY_GROUP
