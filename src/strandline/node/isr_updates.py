"""The ISRs that the leaders of this broker propose, sent to the active controller (AlterPartition) and retried.

A proposed ISR is sent until the controller has decided about it: without an answer, or with one that says nothing about
the proposal itself (another broker epoch, no authorization, a controller that knows less than this leader does), the
same is sent again, a little later each time (the loop is in `decision_queue.py`). The partition judges what was decided
(rule B5): accepted, refused and to be rolled back, or overtaken by metadata that is still on its way.

Always true: one request is in flight at a time, with the oldest proposals that there were when it left, as many as a
controller decodes; of two proposals for a partition that wait, the newer is sent; one of an epoch in which the
partition leads no more is not sent at all.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from strandline.errors import ErrorCode, error_code
from strandline.ids import Uuid
from strandline.node.controller_channel import ControllerChannel
from strandline.node.decision_queue import DecisionQueue, Place
from strandline.node.logger import Logger
from strandline.replica.isr_state import AWAIT_METADATA, ROLLED_BACK, IsrAnswer, ProposedIsr
from strandline.replica.partition import Partition
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_partition import AlterPartitionRequest, AlterPartitionResponse

ALTER_PARTITION: Final = 56
RECOVERY_STATES = (0, 1)
PARTITIONS_PER_REQUEST_MAX = 5_000
"""A controller refuses a request that becomes more than REQUEST_OBJECTS_MAX objects (SEC-L2): the rest goes with the
next one."""
MEMBERS_PER_REQUEST_MAX = 50_000
"""Of all ISRs in a request, for the same reason."""

Answer = IsrAnswer | ErrorCode


class WaitingProposals:
    """Those that wait, one for each partition."""

    def __init__(self) -> None:
        self._waiting: dict[Place, tuple[Partition, ProposedIsr]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, partition: Partition, proposal: ProposedIsr) -> None:
        self._waiting[proposal.topic_id, proposal.partition_index] = partition, proposal

    def take(self) -> dict[Place, tuple[Partition, ProposedIsr]]:
        """The oldest that are still worth sending, as many as fit into one request; nothing, if none waits."""
        taken: dict[Place, tuple[Partition, ProposedIsr]] = {}
        looked_at, members_count = 0, 0
        for place, (partition, proposal) in self._waiting.items():
            members_count += len(proposal.isr)
            if taken and (len(taken) == PARTITIONS_PER_REQUEST_MAX or members_count > MEMBERS_PER_REQUEST_MAX):
                break
            looked_at += 1
            if _holds(partition, proposal):
                taken[place] = partition, proposal
        self._waiting = dict(islice(self._waiting.items(), looked_at, None))
        return taken

    def put_back(self, place: Place, partition: Partition, proposal: ProposedIsr) -> None:
        """Undecided: it waits again, unless there is a newer one by now."""
        self._waiting.setdefault(place, (partition, proposal))


def _holds(partition: Partition, proposal: ProposedIsr) -> bool:
    serves = partition.leads and not (partition.offline or partition.gone)
    return serves and partition.leader_epoch == proposal.leader_epoch


class IsrUpdates(DecisionQueue[tuple[Partition, ProposedIsr], "AlterPartitionResponse"]):
    api_key, purpose, content = ALTER_PARTITION, "alter-partition", "changes of ISRs"
    backoff_min_s, backoff_max_s = 0.05, 1.0

    def __init__(
        self,
        channel: ControllerChannel,
        broker_id: int,
        broker_epoch: Callable[[], int],
        randomness: random.Random,
        logger: Logger,
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        super().__init__(channel, broker_id, broker_epoch, randomness, logger, on_task_ended)
        self.failed = 0
        """Proposals that the controller refused or did not answer."""
        self._waiting_proposals = WaitingProposals()

    def submit(self, partition: Partition, proposal: ProposedIsr) -> None:
        """Have the controller decide; `partition.isr_answered` is called with the answer. Never called from in here."""
        self._waiting_proposals.add(partition, proposal)
        self._start()

    def _has_waiting(self) -> bool:
        return bool(self._waiting_proposals)

    def _take(self) -> dict[Place, tuple[Partition, ProposedIsr]]:
        return self._waiting_proposals.take()

    def _request(self, asked: Mapping[Place, tuple[Partition, ProposedIsr]]) -> AlterPartitionRequest:
        return request(self._broker_id, self._broker_epoch(), (proposal for _, proposal in asked.values()))

    def _settle(
        self, asked: Mapping[Place, tuple[Partition, ProposedIsr]], response: AlterPartitionResponse | None
    ) -> bool:
        answers = {} if response is None else decided(response)
        for place, (partition, proposal) in asked.items():
            self.failed += not isinstance(answers.get(place), IsrAnswer)
            if place in answers:
                partition.isr_answered(proposal, answers[place])
            else:
                self._waiting_proposals.put_back(place, partition, proposal)
        return asked.keys() <= answers.keys()


def request(broker_id: int, broker_epoch: int, proposals: Iterable[ProposedIsr]) -> AlterPartitionRequest:
    kind = messages.request(ALTER_PARTITION)
    topics: dict[Uuid, AlterPartitionRequest.TopicData] = {}
    for proposal in proposals:
        topic = topics.setdefault(proposal.topic_id, kind.TopicData(topic_id=proposal.topic_id))
        topic.partitions.append(
            kind.PartitionData(
                partition_index=proposal.partition_index,
                leader_epoch=proposal.leader_epoch,
                # Version 2 has the one, version 3 the other.
                new_isr=[member for member, _ in proposal.isr],
                new_isr_with_epochs=[
                    kind.BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in proposal.isr
                ],
                leader_recovery_state=proposal.leader_recovery_state,
                partition_epoch=proposal.partition_epoch,
            )
        )
    return kind(broker_id=broker_id, broker_epoch=broker_epoch, topics=list(topics.values()))


def decided(response: AlterPartitionResponse) -> dict[Place, Answer]:
    """The answers that say something about the proposal itself. A partition that is not among them has to be asked for
    again."""
    answers: dict[Place, Answer] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            place, code = (Uuid(topic.topic_id), partition.partition_index), error_code(partition.error_code)
            if code in ROLLED_BACK or code in AWAIT_METADATA:
                answers[place] = code
            elif code is ErrorCode.NONE and partition.leader_recovery_state in RECOVERY_STATES:
                answers[place] = IsrAnswer(
                    partition.leader_id,
                    partition.leader_epoch,
                    tuple(partition.isr),
                    partition.leader_recovery_state,
                    partition.partition_epoch,
                )
    return answers
