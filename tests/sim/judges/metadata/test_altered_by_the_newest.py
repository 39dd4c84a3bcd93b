from __future__ import annotations

import pytest

from strandline.histories.judges.metadata.altered_by_the_newest import AlteredByTheNewest
from strandline.histories.wire import ALTER_PARTITION, QuorumMessage
from strandline.ids import ZERO_UUID
from strandline.wire import messages

from ..quorum.stage import broken, stage


def answered(
    *, leader_id: int = 2, leader_epoch: int = 4, partition_epoch: int = 8, code: int = 0, top_level: int = 0
) -> QuorumMessage:
    """Broker 2 has asked for an ISR in leader epoch 4, of partition epoch 7."""
    Alter, Answer = messages.request(ALTER_PARTITION), messages.response(ALTER_PARTITION)
    asked = Alter.PartitionData(partition_index=0, leader_epoch=4, partition_epoch=7)
    answered = Answer.PartitionData(
        partition_index=0,
        error_code=code,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
    )
    request = Alter(broker_id=2, topics=[Alter.TopicData(topic_id=ZERO_UUID, partitions=[asked])])
    answer = Answer(error_code=top_level, topics=[Answer.TopicData(topic_id=ZERO_UUID, partitions=[answered])])
    return QuorumMessage(3, ALTER_PARTITION, -1, response=True, candidate_id=2, request=request, answer=answer)


@pytest.mark.parametrize(
    "sound", [{}, {"partition_epoch": 7}, {"leader_epoch": 5}, {"code": 95, "leader_epoch": 9}, {"top_level": 77}]
)
def test_the_next_state_follows_from_what_was_asked(sound: dict[str, int]) -> None:
    stage(AlteredByTheNewest).observed.see_sent(answered(**sound))


@pytest.mark.parametrize("wrong", [{"partition_epoch": 9}, {"leader_id": 1}, {"leader_epoch": 6}])
def test_what_was_overtaken_is_refused(wrong: dict[str, int]) -> None:
    with broken(AlteredByTheNewest):
        stage(AlteredByTheNewest).observed.see_sent(answered(**wrong))
