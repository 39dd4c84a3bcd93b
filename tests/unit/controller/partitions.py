"""Partitions in a line, and what happens to them.

`123 isr=12 leader=1 elr=3 last=1 adding=4 removing=1 recovering`: the replicas, then whatever is not empty, one digit for each
broker; without `leader=` nobody leads. `down=3` fences a broker of the cluster, `stopping=3` has it in controlled shutdown.
After an event `epoch+1` tells that the leader epoch rose.
"""

from __future__ import annotations

from strandline.controller import broker_changes, leader_balance, reassignments, requested_elections
from strandline.controller.alter_partition import ANY_EPOCH, NewIsr
from strandline.controller.alter_partition import alter as alter_partition
from strandline.controller.dir_assignments import ReplicaDirAssignment, assign
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import Election
from strandline.controller.partition_change import RECOVERED, RECOVERING
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.metadata.records import (
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

from .conftest import after, broker

TOPIC, TOPIC_ID = "t", Uuid(bytes(15) + b"\xaa")
LEADER_EPOCH, PARTITION_EPOCH = 5, 9
BROKERS = range(1, 7)


def directory(broker_id: int, number: int = 0) -> Uuid:
    """The log dirs of a broker: 0 is where it has the partition."""
    return Uuid(bytes(13) + bytes([broker_id, 1 + number, 0xD1]))


def _ids(digits: str) -> tuple[int, ...]:
    return tuple(int(digit) for digit in digits)


def _digits(ids: tuple[int, ...]) -> str:
    return "".join(str(broker_id) for broker_id in ids)


def image_of(line: str) -> MetadataImage:
    """A cluster of six brokers and this partition."""
    replicas, *fields = line.split()
    values = dict(field.partition("=")[::2] for field in fields)
    partition = PartitionImage(
        replicas=_ids(replicas),
        isr=_ids(values.get("isr", "")),
        leader=int(values.get("leader", NO_LEADER)),
        leader_epoch=LEADER_EPOCH,
        partition_epoch=PARTITION_EPOCH,
        adding_replicas=_ids(values.get("adding", "")),
        removing_replicas=_ids(values.get("removing", "")),
        directories=tuple(directory(replica) for replica in _ids(replicas)),
        leader_recovery_state=RECOVERING if "recovering" in values else RECOVERED,
        elr=_ids(values.get("elr", "")),
        last_known_elr=_ids(values.get("last", "")),
    )
    topic = TopicImage(TOPIC, TOPIC_ID, (partition,))
    down, stopping = _ids(values.get("down", "")), _ids(values.get("stopping", ""))
    brokers = {
        i: broker(i, fenced=i in down, stopping=i in stopping, log_dirs=(directory(i), directory(i, 1)))
        for i in BROKERS
    }
    return MetadataImage(topics={TOPIC: topic}, topics_by_id={TOPIC_ID: topic}, brokers=brokers)


def partition_of(image: MetadataImage) -> PartitionImage:
    return image.topics[TOPIC].partitions[0]


def line_of(partition: PartitionImage, leader_epoch: int = LEADER_EPOCH) -> str:
    parts = [
        _digits(partition.replicas),
        *(
            f"{name}={_digits(value)}"
            for name, value in (
                ("isr", partition.isr),
                ("leader", () if partition.leader == NO_LEADER else (partition.leader,)),
                ("elr", partition.elr),
                ("last", partition.last_known_elr),
                ("adding", partition.adding_replicas),
                ("removing", partition.removing_replicas),
            )
            if value
        ),
    ]
    if partition.leader_recovery_state == RECOVERING:
        parts.append("recovering")
    if partition.leader_epoch != leader_epoch:
        parts.append(f"epoch+{partition.leader_epoch - leader_epoch}")
    return " ".join(parts)


def policy(words: str) -> ElectionPolicy:
    """`min=2 elr unclean`"""
    values = dict(word.partition("=")[::2] for word in words.split())
    return ElectionPolicy(int(values.get("min", "1")), "unclean" in values, "elr" in values)


def records_of(image: MetadataImage, event: str, rules: ElectionPolicy) -> list[MetadataRecord]:
    """The records that an event leads to, those about the broker among them."""
    what, _, rest = event.partition(" ")
    broker_id = int(rest) if rest.isdigit() and len(rest) == 1 else 0
    match what:
        case "fence":
            return [*broker_changes.broker_fenced(image, broker_id, rules), registration(broker_id, fenced=1)]
        case "unfence":
            return [registration(broker_id, fenced=-1), *broker_changes.broker_unfenced(image, broker_id, rules)]
        case "stop":
            stopping = registration(broker_id, in_controlled_shutdown=1)
            return [stopping, *broker_changes.broker_shutting_down(image, broker_id, rules)]
        case "restart":
            return [*broker_changes.broker_fenced(image, broker_id, rules), _registered(broker_id)]
        case "crash":
            return [*broker_changes.broker_uncleanly_restarted(image, broker_id, rules), _registered(broker_id)]
        case "unregister":
            gone = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker_id)
            return [*broker_changes.broker_unregistered(image, broker_id, rules), gone]
        case "disk":
            left = registration(broker_id, log_dirs=(directory(broker_id, 1),))
            return [*broker_changes.dirs_offline(image, broker_id, {directory(broker_id)}, rules), left]
        case "place":
            return assign(
                image, broker_id, broker_id, [ReplicaDirAssignment(directory(broker_id, 1), TOPIC_ID, 0)], rules
            )[0]
        case "periodic":
            return [*broker_changes.unclean_elections(image, rules)]
        case "balance":
            return [*leader_balance.balance(image, rules)[0]]
        case "elect":
            return [requested_elections.elect(image, TOPIC, 0, Election[rest.upper()], rules)]
        case "isr":
            return _alter(image, rest, rules)
        case "reassign":
            record = reassignments.alter(image, TOPIC, 0, _ids(rest), rules)
        case "cancel":
            record = reassignments.alter(image, TOPIC, 0, None, rules)
        case _:
            raise AssertionError(event)
    return [] if record is None else [record]


def registration(broker_id: int, **fields: object) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_id, **fields)  # type: ignore[arg-type]


def _registered(broker_id: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=Uuid(bytes([broker_id]) * 16),
        broker_epoch=broker_id,
        end_points=(),
        log_dirs=(directory(broker_id), directory(broker_id, 1)),
    )


def _alter(image: MetadataImage, rest: str, rules: ElectionPolicy) -> list[MetadataRecord]:
    """The leader, as it should be, wants this ISR; `recovering` if it is not done yet."""
    isr, _, state = rest.partition(" ")
    partition = partition_of(image)
    wanted = NewIsr(
        TOPIC_ID,
        0,
        partition.leader_epoch,
        partition.partition_epoch,
        [(replica, ANY_EPOCH) for replica in _ids(isr)],
        RECOVERING if state else RECOVERED,
    )
    records, (answer,) = alter_partition(image, partition.leader, partition.leader, [wanted], rules)
    if answer is ErrorCode.NEW_LEADER_ELECTED:
        return records
    if isinstance(answer, ErrorCode):
        assert not records
        raise KafkaError(answer)
    assert answer == partition_of(after(image, records)), "the answer is the state that follows"
    return records


def happen(line: str, event: str, words: str = "") -> str:
    """The partition after an event, or the error."""
    image = image_of(line)
    try:
        image = after(image, records_of(image, event, policy(words)))
    except KafkaError as error:
        return error.code.name
    partition = partition_of(image)
    changed = partition != partition_of(image_of(line))
    assert partition.partition_epoch == PARTITION_EPOCH + changed, "B6: the partition epoch rises with every change"
    return line_of(partition)
