"""A coordinator of transactions under fire, on the listener of brokers: they may say most.

Requests name transactional ids as they are at that moment, with the pairs that they have, so that some get past all checks:
transactions begin, are ended by somebody else, time out, lose their producer, and have epochs taken up to the last one.

Always true: after all of it a transaction goes from its begin to its end, and every state has been written.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.log.recovery import load
from strandline.metadata.features import bootstrap_features
from strandline.node.log_dirs import format_dirs
from strandline.node.node import Node
from strandline.records.batch import decode
from strandline.records.header import iterate
from strandline.runtime.disk import FileDisk
from strandline.transactions import framing
from strandline.transactions.metadata import ProducerIdAndEpoch, TransactionMetadata
from strandline.transactions.states import TransactionState
from strandline.wire import messages
from strandline.wire.structs import Field, Struct

from .batches import Batches
from .samples import Samples
from .stage import BACK_WITHIN_S, Stage

FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN, DESCRIBE_TRANSACTIONS = 10, 22, 24, 26, 65
APIS = (10, 22, 24, 25, 26, 27, 28, 61, 65, 66)
STATE_TOPIC = "__transaction_state"
CLIENTS = "CLIENTS"
"""The listener for those that may not act as brokers."""
LONGEST_BYTES = 32_767
LONG_TID = "t" * 100_000
TRANSACTIONAL_IDS = ("t", "u", "v", "w", "x" * LONGEST_BYTES)
NO_ID = ("", "nobody's", "é漢" * 50, "y" * (LONGEST_BYTES + 1), LONG_TID)
ID_FIELDS = ("transactional_id", "v3_and_below_transactional_id", "transactional_ids", "coordinator_keys", "key")
OTHER_TEXTS = ("group_id", "member_id", "group_instance_id", "committed_metadata")
PATTERNS = ("", "t|u", ".*", "(", "a{1000}{1000}", "x" * 100_000)


def errors(reply: Any) -> set[ErrorCode]:
    """All that a reply tells, but for what was not attempted because of others."""
    found: set[ErrorCode] = set()
    for name, value in vars(reply).items():
        if name.endswith("error_code"):
            found.add(ErrorCode(value))
        for item in value if isinstance(value, list) else [value]:
            if hasattr(item, "__dict__"):
                found |= errors(item)
    return found - {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED}


class TransactionSamples(Samples):
    def __init__(self, chance: random.Random, node: Callable[[], Node], topics: Any, batches: Batches) -> None:
        super().__init__(chance, topics, batches)
        self._node = node
        self._has_long_texts = False
        """Versions that are not flexible have none above 32,767 bytes."""

    def body(self, api_key: int, version: int) -> bytes:
        self._has_long_texts = messages.request_family(api_key).struct(version).flexible
        return super().body(api_key, version)

    def _known(self) -> list[tuple[str, ProducerIdAndEpoch]]:
        coordinator = self._node().parts.transactions.coordinator
        return sorted(
            (tid, each.producer) for shard in coordinator.shards() for tid, each in shard.transactions.items()
        )

    def _struct(self, struct: Struct) -> Any:
        """Of a transactional id and a pair, most belong together."""
        made = super()._struct(struct)
        known = self._known()
        if known and self._chance.random() < 0.8:
            transactional_id, producer = self._chance.choice(known)
            values = {"transactional_id": transactional_id, "producer_id": producer.producer_id}
            values["producer_epoch"] = producer.epoch + self._chance.choice((0, 0, 0, 0, 1, -1))
            for field in struct.fields:
                name = field.name.removeprefix("v3_and_below_")
                if name in values:
                    setattr(made, field.name, values[name])
        return made

    def _text(self, name: str) -> str:
        chance = self._chance
        if name in ID_FIELDS:
            if chance.random() < 0.8:
                return chance.choice(TRANSACTIONAL_IDS)
            return chance.choice(NO_ID if self._has_long_texts else NO_ID[:-2])
        if name in OTHER_TEXTS and self._has_long_texts and chance.random() < 0.1:
            return chance.choice(NO_ID[-2:])
        if name == "transactional_id_pattern":
            return chance.choice(PATTERNS)
        if name == "state_filters":
            return chance.choice((*(state.label for state in TransactionState), "Nonsense"))
        return super()._text(name)

    def _number(self, field: Field) -> int:
        if field.name == "transaction_timeout_ms" and self._chance.random() < 0.8:
            return self._chance.choice((10, 1000, 60_000))
        if field.name == "key_type":
            return self._chance.choice((1, 1, 0, 2))
        if field.name in ("partitions", "partition_indexes") and self._chance.random() < 0.8:
            return 0
        return super()._number(field)


class TransactionStage(Stage):
    sound_share = 0.5
    kept = frozenset({STATE_TOPIC})

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.answers: Counter[tuple[str, ErrorCode]] = Counter()

    def cases(self) -> list[tuple[int, int]]:
        return [case for case in super().cases() if case[0] in APIS]

    def samples(self, chance: random.Random) -> TransactionSamples:
        return TransactionSamples(chance, lambda: self.node, self.topics, Batches(chance, int(time.time() * 1000)))

    def settings(self) -> dict[str, str]:
        listeners = ("PLAINTEXT", CLIENTS, "CONTROLLER")
        return {
            **super().settings(),
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in listeners),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listeners),
            "inter.broker.listener.name": "PLAINTEXT",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
        }

    def format(self, randomness: random.Random) -> None:
        levels = bootstrap_features(wanted=None)
        format_dirs(self._disk, [str(self.root)], str(Uuid.draw(randomness)), 1, randomness, features=levels)

    async def start(self) -> None:
        await super().start()
        await self._coordinating()

    async def tidy(self) -> None:
        await super().tidy()
        if STATE_TOPIC not in self.node.context.metadata.image().topics:
            await self._coordinating()  # a request deleted it

    async def _coordinating(self) -> None:
        for transactional_id in TRANSACTIONAL_IDS[:-1]:
            await self.producer(transactional_id)

    def read(self, api_key: int, reply: Any) -> None:
        self.answers[self.apis[api_key].name, min(errors(reply), default=ErrorCode.NONE)] += 1

    # A sound client

    async def producer(self, transactional_id: str) -> ProducerIdAndEpoch:
        """Its next pair, once there is a coordinator and the last transaction is ended."""
        find = messages.request(FIND_COORDINATOR)(key_type=1, coordinator_keys=[transactional_id])
        init = messages.request(INIT_PRODUCER_ID)(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        deadline = time.monotonic() + BACK_WITHIN_S
        while True:
            found = (await self.call(FIND_COORDINATOR, 4, find)).coordinators[0]
            reply = await self.call(INIT_PRODUCER_ID, 5, init)
            if not found.error_code and not reply.error_code:
                return ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch)
            assert time.monotonic() < deadline, f"no producer id: {ErrorCode(reply.error_code).name}"
            await asyncio.sleep(0.01)

    async def check_clean(self) -> None:
        await super().check_clean()
        await self.check_transaction()

    async def check_transaction(self, transactional_id: str = "sound") -> None:
        """From its begin to its end, at two topics."""
        producer = await self.producer(transactional_id)
        Add = messages.request(ADD_PARTITIONS)
        topics = [Add.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("plain", "compacted")]
        pair = {"v3_and_below_producer_id": producer.producer_id, "v3_and_below_producer_epoch": producer.epoch}
        added = Add(v3_and_below_transactional_id=transactional_id, v3_and_below_topics=topics, **pair)
        assert not errors(await self.call(ADD_PARTITIONS, 3, added))
        end = messages.request(END_TXN)(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=True,
        )
        assert not errors(await self.call(END_TXN, 5, end))
        describe = messages.request(DESCRIBE_TRANSACTIONS)(transactional_ids=[transactional_id])
        deadline = time.monotonic() + BACK_WITHIN_S
        while (state := (await self.call(DESCRIBE_TRANSACTIONS, 0, describe)).transaction_states[0]).topics:
            assert time.monotonic() < deadline, f"markers are missing at {state.topics}"
            await asyncio.sleep(0.01)
        assert state.transaction_state in ("PrepareCommit", "CompleteCommit")

    def states_written(self) -> set[str]:
        """After the node stopped: the states in the log of transactions."""
        disk, found = FileDisk(), set()
        for directory in self.root.glob(f"{STATE_TOPIC}-*"):
            log = load(disk, str(directory), self.node.config.topic_config({}), clean=False).log
            for segment in log.segments:
                data = segment.file.read_blocking(0, segment.size)
                for position, header in iterate(data):
                    for record in decode(data[position : position + header.size_bytes]):
                        decoded = framing.decode(record.key, record.value)
                        if decoded is not None and isinstance(decoded.value, TransactionMetadata):
                            found.add(decoded.value.state.label)
            log.close()
        disk.close()
        return found
