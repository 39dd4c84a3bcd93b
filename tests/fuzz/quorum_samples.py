"""Requests that a broker, another controller or a tool could have sent to the controller listener of one node.

Always true: the same seed and the same node give the same requests. Most values are those of the node itself, or one beside
them: its cluster id, its epochs, offsets and ids, so that a request is refused late or not at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from strandline.api.quorum.metadata_partition import TOPIC, TOPIC_ID
from strandline.api.requests.forwarding import anonymous
from strandline.api.table import CONTROLLER_APIS
from strandline.ids import ZERO_UUID, Uuid
from strandline.metadata.features import SUPPORTED
from strandline.node.node import Node
from strandline.raft.messages import OffsetAndEpoch
from strandline.wire.structs import Field

from .batches import Batches
from .mutations import mutate
from .samples import Samples

FETCH, ALTER_PARTITION, ENVELOPE, FETCH_SNAPSHOT, UPDATE_VOTER = 1, 56, 58, 59, 82
KNOWN_SHARE = 0.93
"""Of the fields whose names say what they mean."""
HERE = "127.0.0.1"
CLOSED_PORT = 1
"""Nobody listens there."""
STRANGER = Uuid(b"a stranger's dir")


class QuorumSamples(Samples):
    def __init__(
        self, chance: random.Random, node: Callable[[], Node], topics: dict[str, Uuid], batches: Batches
    ) -> None:
        super().__init__(chance, topics, batches)
        self._node = node
        self._embedded = Samples(chance, topics, batches)
        self._api_key = -1

    def body(self, api_key: int, version: int) -> bytes:
        self._api_key = api_key
        self._known = self._facts()
        return super().body(api_key, version)

    def _facts(self) -> dict[str, Sequence[Any]]:
        """What a field of this name may well say, the likeliest several times."""
        node, key = self._node(), self._api_key
        quorum, image = node.quorum, node.quorum.committed
        epoch, end_offset, me = quorum.raft.epoch, quorum.log.log_end_offset, quorum.raft.me
        epochs = (epoch, epoch, epoch, epoch + 1, epoch - 1, 0)
        broker = image.brokers.get(1)
        broker_epoch = -1 if broker is None else broker.epoch
        broker_epochs = (*[broker_epoch] * 6, broker_epoch - 1, end_offset, -1)
        incarnation = STRANGER if broker is None else broker.incarnation_id
        dirs = (*(() if broker is None else broker.log_dirs), me.directory_id, STRANGER, ZERO_UUID)
        topic_ids = (*(topic.topic_id for topic in image.topics.values()), TOPIC_ID)
        partitions = [topic.partitions[0] for topic in image.topics.values()]
        ports = tuple(listener.port for listener in node.parts.listeners)
        offsets = (end_offset, end_offset, end_offset - 1, end_offset + 1, 0, 5)
        snapshot = quorum._log.latest_snapshot or OffsetAndEpoch(0, 0)
        is_of_quorum = key in (FETCH, FETCH_SNAPSHOT)
        names = (TOPIC,) if key == FETCH_SNAPSHOT else ("CONTROLLER", "CONTROLLER", "PLAINTEXT")
        of_partition = (
            {}
            if key != ALTER_PARTITION
            else {
                "leader_epoch": tuple(each.leader_epoch for each in partitions) or (0,),
                "partition_epoch": tuple(each.partition_epoch for each in partitions) or (0,),
            }
        )
        return {
            "cluster_id": (node.context.cluster_id,),
            "topic_name": (TOPIC,),
            "topic": (TOPIC,),
            "name": names,
            "host": (HERE,),
            "port": (*ports, CLOSED_PORT),
            "topic_id": (TOPIC_ID,) if is_of_quorum else topic_ids,
            "partition_index": (0,),
            "partition": (0,),
            "voter_id": (1, 1, 1, -1, 2),
            "replica_id": (2, 2, 3, 1, -1),
            "leader_id": (2, 2, 3, 1, -1),
            "candidate_id": (1, 2, 3),
            "replica_epoch": epochs,
            "leader_epoch": epochs,
            "current_leader_epoch": epochs,
            "epoch": (*[snapshot.epoch] * 9, *epochs),
            "last_offset_epoch": (epoch, epoch, epoch - 1, epoch + 1, 0),
            "last_fetched_epoch": (epoch, epoch, epoch - 1, 0),
            "last_offset": (end_offset, end_offset, end_offset + 9, 0),
            "fetch_offset": offsets,
            "high_watermark": (*offsets, -1, 2**63 - 1),
            "end_offset": (*[snapshot.offset] * 9, *offsets),
            "position": (0, 0, 10, 1 << 20),
            "voter_directory_id": (me.directory_id, me.directory_id, ZERO_UUID, STRANGER),
            "replica_directory_id": (STRANGER, ZERO_UUID, me.directory_id),
            "candidate_directory_id": (STRANGER, ZERO_UUID, me.directory_id),
            "max_bytes": (1 << 20, 1 << 20, 100, 1, 0, -1),
            "broker_id": (1, 1, 1, 1, 2),
            "controller_id": (1, 1, 2),
            "broker_epoch": broker_epochs,
            "previous_broker_epoch": broker_epochs,
            "current_metadata_offset": offsets,
            "incarnation_id": (incarnation, STRANGER),
            "is_migrating_zk_broker": (False,),
            "log_dirs": dirs,
            "offline_log_dirs": dirs,
            "cordoned_log_dirs": dirs,
            "id": dirs,
            "new_isr": (1, 1, 1, 2),
            "leader_recovery_state": (0, 0, 1),
            "security_protocol": (0, 0, 1, 9),
            "min_supported_version": (0, 0, 1),
            "max_supported_version": (1, 1, 0) if key == UPDATE_VOTER else (30, 30, 30, 1),
            **of_partition,
        }

    def _value(self, field: Field) -> Any:
        if field.name == "features" and self._chance.random() < KNOWN_SHARE:
            assert field.struct is not None
            assert field.struct.cls is not None
            return [
                field.struct.cls(name=name, min_supported_version=levels[0], max_supported_version=levels[-1])
                for name, levels in SUPPORTED.items()
            ]
        if field.array and self._chance.random() < KNOWN_SHARE:
            return [self._single(field)]
        if field.name == "cluster_id" and self._chance.random() < KNOWN_SHARE:
            return self._node().context.cluster_id
        return super()._value(field)

    def _single(self, field: Field) -> Any:
        chance = self._chance
        if field.struct is None and (known := self._known.get(field.name)) and chance.random() < KNOWN_SHARE:
            value = chance.choice(known)
            return max(value, -1) if isinstance(value, int) and not isinstance(value, bool) else value
        parts: dict[str, Callable[[], bytes]] = {
            "request_data": self._request,
            "request_principal": anonymous,
            "client_host_address": lambda: chance.choice((bytes(4), bytes(16), bytes(5))),
        }
        if self._api_key == ENVELOPE and field.name in parts and chance.random() < KNOWN_SHARE:
            return parts[field.name]()
        return super()._single(field)

    def _request(self) -> bytes:
        """A request to be forwarded: sound, broken, or one that nobody forwards."""
        chance = self._chance
        forwarded = [api for api in CONTROLLER_APIS.values() if api.forwarded or chance.random() < 0.05]
        api = chance.choice(forwarded)
        payload = self._embedded.payload(api.key, chance.choice(api.versions))
        return payload if chance.random() < 0.5 else mutate(payload, payload[::-1], chance)
