"""AssignReplicasToDirs: a broker tells where its replicas are."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from strandline.api import assign_replicas_to_dirs
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.wire import messages

from .conftest import dir_id, registration

Request = messages.request(73)


def in_dir(directory, topic_id, *indexes):
    partitions = [Request.PartitionData(partition_index=index) for index in indexes]
    return Request.DirectoryData(id=directory, topics=[Request.TopicData(topic_id=topic_id, partitions=partitions)])


async def assign(broker, *directories, sender=1, epoch=1):
    return await broker.call(
        assign_replicas_to_dirs, 0, broker_id=sender, broker_epoch=epoch, directories=list(directories)
    )


async def test_it_is_known_afterwards(broker):
    broker.commit([registration(2)])
    unassigned = Uuid(bytes(15) + b"\x01")
    topic_id = broker.create("t", (1, 2), (2,), directories=(unassigned, unassigned))
    reply = await assign(broker, in_dir(dir_id(1), topic_id, 0, 1, 7), in_dir(dir_id(1), Uuid(b"x" * 16), 0))
    assert reply.error_code == 0
    assert [(directory.id, directory.topics[0].topic_id) for directory in reply.directories] == [
        (dir_id(1), topic_id),
        (dir_id(1), b"x" * 16),
    ]
    assert [
        [(partition.partition_index, partition.error_code) for partition in directory.topics[0].partitions]
        for directory in reply.directories
    ] == [
        [(0, 0), (1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
        [(0, ErrorCode.UNKNOWN_TOPIC_ID)],
    ]
    assert broker.image.topics["t"].partitions[0].directories == (dir_id(1), unassigned)


async def test_the_whole_is_refused(broker):
    topic_id = broker.create("t")
    reply = await assign(broker, in_dir(dir_id(1), topic_id, 0), epoch=7)
    assert (reply.error_code, reply.directories) == (ErrorCode.STALE_BROKER_EPOCH, [])
    broker.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply = await assign(broker, in_dir(dir_id(1), topic_id, 0))
    assert (reply.error_code, reply.directories) == (ErrorCode.NOT_CONTROLLER, [])
