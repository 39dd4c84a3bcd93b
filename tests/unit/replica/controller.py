"""The active controller of a small cluster with one partition: the real decisions, each an image of its own.

Always true: images follow each other as the records say; whoever reads them may be behind, but reads them in order.
"""

from __future__ import annotations

from strandline.controller import (
    broker_changes,
    brokers,
    heartbeats,
    leader_balance,
    reassignments,
    requested_elections,
)
from strandline.controller.alter_partition import Answer, NewIsr, alter
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import Election
from strandline.controller.liveness import Liveness
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.features import METADATA_VERSION, SUPPORTED
from strandline.metadata.image import Endpoint, MetadataImage, PartitionImage
from strandline.metadata.replay import replay
from strandline.replica.isr_state import ProposedIsr

TOPIC, TOPIC_ID = "t", Uuid(bytes(15) + b"\xaa")
SESSION_S = 3.0


class Controller:
    def __init__(self, policy: ElectionPolicy) -> None:
        self.policy = policy
        self.images = [MetadataImage(features={METADATA_VERSION: 29})]
        self.liveness = Liveness(SESSION_S)

    @property
    def image(self) -> MetadataImage:
        return self.images[-1]

    @property
    def partition(self) -> PartitionImage:
        return self.image.topics[TOPIC].partitions[0]

    def commit(self, records: list[r.MetadataRecord]) -> None:
        if records:
            image = self.image
            self.images.append(replay(image, records, image.end_offset + len(records), 1))

    def create(self, replicas: tuple[int, ...]) -> None:
        self.commit(
            [
                r.TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
                r.PartitionRecord(
                    partition_id=0,
                    topic_id=TOPIC_ID,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                ),
            ]
        )

    # Brokers

    def register(self, broker_id: int, incarnation: int, previous_epoch: int) -> int:
        wanted = brokers.BrokerRegistration(
            broker_id,
            Uuid(bytes([broker_id]) + incarnation.to_bytes(15)),
            [Endpoint("PLAINTEXT", "localhost", 9092, 0)],
            [(name, levels[0], levels[-1]) for name, levels in SUPPORTED.items()],
            [Uuid(bytes(13) + bytes([broker_id, 1, 0xD1]))],
            previous_broker_epoch=previous_epoch,
        )
        records, epoch = brokers.register(self.image, wanted, self.policy, is_live=False, kraft_version=1)
        self.commit(records)
        return epoch

    def heartbeat(
        self, broker_id: int, epoch: int, applied: MetadataImage, now: float, *, stopping: bool = False
    ) -> heartbeats.BrokerHeartbeatReply:
        said = heartbeats.BrokerHeartbeat(broker_id, epoch, applied.end_offset - 1, want_shut_down=stopping)
        records, answer = heartbeats.heartbeat(self.image, self.liveness, said, now, self.policy)
        self.commit(records)
        return answer

    def fence(self, broker_id: int) -> None:
        """Its session is over."""
        self.liveness.forget(broker_id)
        self.commit(brokers.fence(self.image, broker_id, self.policy))

    # Partitions

    def alter(self, broker_id: int, broker_epoch: int, proposal: ProposedIsr) -> Answer:
        """KafkaError if an older incarnation asks."""
        wanted = NewIsr(*proposal[:6])
        records, (answer,) = alter(self.image, broker_id, broker_epoch, [wanted], self.policy)
        self.commit(records)
        return answer

    def elect(self, kind: Election) -> None:
        self.commit([requested_elections.elect(self.image, TOPIC, 0, kind, self.policy)])

    def balance(self) -> None:
        self.commit([*leader_balance.balance(self.image, self.policy)[0]])

    def elect_uncleanly_if_allowed(self) -> None:
        self.commit([*broker_changes.unclean_elections(self.image, self.policy)])

    def reassign(self, replicas: tuple[int, ...] | None) -> None:
        record = reassignments.alter(self.image, TOPIC, 0, replicas, self.policy)
        self.commit([] if record is None else [record])
