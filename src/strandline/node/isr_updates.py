"""The ISRs that the leaders of this broker propose, sent to the active controller (AlterPartition).

A proposed ISR is sent until the controller has decided about it: without an answer, or with one that says nothing about
the proposal itself (another broker epoch, no authorization, a controller that knows less than this leader does), the
same is sent again, a little later each time. The partition judges what was decided (rule B5): accepted, refused and to
be rolled back, or overtaken by metadata that is still on its way.

Always true: one request is in flight at a time, with the oldest proposals that there were when it left, as many as a
controller decodes; of two proposals for a partition that wait, the newer is sent; one of an epoch in which the
partition leads no more is not sent at all.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import Uuid
from strandline.node.controller_channel import ControllerChannel
from strandline.node.logger import Logger
from strandline.replica.isr import AWAIT_METADATA, ROLLED_BACK, IsrAnswer, ProposedIsr
from strandline.replica.partition import Partition
from strandline.wire import messages

ALTER_PARTITION = 56
PURPOSE = "alter-partition"
"""A connection of its own: heartbeats do not wait behind decisions about partitions."""
TIMEOUT_S = 30.0
"""For one request. Another leader of the quorum ends it before."""
BACKOFF_MIN_S, BACKOFF_MAX_S = 0.05, 1.0
RECOVERY_STATES = (0, 1)
PARTITIONS_PER_REQUEST_MAX = 5_000
"""A controller refuses a request that becomes more than REQUEST_OBJECTS_MAX objects (SEC-L2): the rest goes with the
next one."""
MEMBERS_PER_REQUEST_MAX = 50_000
"""Of all ISRs in a request, for the same reason."""

Place = tuple[bytes, int]
"""Topic id and index."""
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


class IsrUpdates:
    def __init__(
        self,
        channel: ControllerChannel,
        broker_id: int,
        broker_epoch: Callable[[], int],
        randomness: random.Random,
        logger: Logger,
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._channel = channel
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._randomness = randomness
        self._logger = logger
        self._on_task_ended = on_task_ended
        self.failed = 0
        """Proposals that the controller refused or did not answer."""
        self._waiting_proposals = WaitingProposals()
        self._sending: asyncio.Task[None] | None = None
        self._is_closed = False
        self._loop = asyncio.get_running_loop()

    def submit(self, partition: Partition, proposal: ProposedIsr) -> None:
        """Have the controller decide; `partition.isr_answered` is called with the answer. Never called from in here."""
        self._waiting_proposals.add(partition, proposal)
        if self._sending is None and not self._is_closed:
            self._sending = self._loop.create_task(self._send_all())
            self._sending.add_done_callback(self._on_task_ended)

    async def close(self) -> None:
        """What waits is not sent, and no partition gets an answer any more."""
        self._is_closed = True
        if self._sending is not None:
            sending = self._sending
            sending.cancel()
            await asyncio.wait([sending])

    async def _send_all(self) -> None:
        failures = 0
        try:
            while proposals := self._waiting_proposals.take():
                answers = await self._ask([proposal for _, proposal in proposals.values()])
                for place, (partition, proposal) in proposals.items():
                    self.failed += not isinstance(answers.get(place), IsrAnswer)
                    if place in answers:
                        partition.isr_answered(proposal, answers[place])
                    else:
                        self._waiting_proposals.put_back(place, partition, proposal)
                failures = 0 if proposals.keys() <= answers.keys() else failures + 1
                if failures:
                    await asyncio.sleep(self._backoff_s(failures))
        finally:
            # Not when the task is done, but now: what is submitted from here on needs another.
            self._sending = None

    def _backoff_s(self, failures: int) -> float:
        doubled = min(BACKOFF_MIN_S * 2.0 ** min(failures - 1, 10), BACKOFF_MAX_S)
        return doubled * self._randomness.uniform(0.5, 1.0)

    async def _ask(self, proposals: list[ProposedIsr]) -> Mapping[Place, Answer]:
        """What was decided, by partition; nothing if the request as a whole came to nothing."""
        message = request(self._broker_id, self._broker_epoch(), proposals)
        try:
            # Sending it twice is safe: of two that are equal the second finds a newer partition epoch.
            response = await self._channel.ask(ALTER_PARTITION, message, TIMEOUT_S, retry=True, purpose=PURPOSE)
        except KafkaError as error:
            self._logger.info(
                "the controller did not answer a change of ISRs", error=error.message, count=len(proposals)
            )
            return {}
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            self._logger.warning(
                "the controller refused changes of ISRs, they will be sent again", error=code.name, count=len(proposals)
            )
            return {}
        return decided(response)


def request(broker_id: int, broker_epoch: int, proposals: Iterable[ProposedIsr]) -> Any:
    kind = messages.request(ALTER_PARTITION)
    topics: dict[Uuid, Any] = {}
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


def decided(response: Any) -> dict[Place, Answer]:
    """The answers that say something about the proposal itself. A partition that is not among them has to be asked for
    again."""
    answers: dict[Place, Answer] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            place, code = (bytes(topic.topic_id), partition.partition_index), error_code(partition.error_code)
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
