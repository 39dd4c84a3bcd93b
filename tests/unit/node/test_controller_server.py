"""The controller in a node: what it does when it becomes active, and when it is not any more."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.controller.liveness import Liveness
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.features import bootstrap_features, bootstrap_records
from strandline.metadata.image import BrokerImage, MetadataImage
from strandline.node.controller_server import ControllerServer
from strandline.runtime.clock import SystemClock
from strandline.runtime.logging import JsonLogger

CONFIG = {
    "node.id": "1",
    "process.roles": "controller",
    "listeners": "CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": "/data",
}
BROKER = BrokerImage(2, epoch=7, incarnation_id=Uuid(bytes(16)), endpoints=(), fenced=False)


class Leading:
    """A quorum whose leadership goes, or does not, while a decision is being committed."""

    is_active = True

    def __init__(self, *, lasts: bool) -> None:
        self.tip = MetadataImage(brokers={2: BROKER})
        self.lasts = lasts
        self.written: list[Any] = []

    async def decide(self, decision: Any) -> Any:
        records, answer = decision(self.tip)
        if not self.lasts:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the leader of epoch 2 is node 2")
        self.written += records
        return answer


def server(quorum: Any, liveness: Liveness) -> ControllerServer:
    config = NodeConfig.build(of(CONFIG), insecure=True)
    bootstrap = [*bootstrap_records(bootstrap_features())]
    return ControllerServer(config, quorum, liveness, SystemClock(), JsonLogger(lambda line: None, 20), bootstrap)


async def test_a_new_controller_writes_what_a_cluster_begins_with_and_takes_the_sessions_over():
    quorum, liveness = Leading(lasts=True), Liveness(3.0)
    await server(quorum, liveness).on_active(1)
    assert quorum.written
    assert liveness.next_deadline() is not None


async def test_one_that_is_deposed_before_its_first_records_are_committed_has_no_sessions():
    liveness = Liveness(3.0)
    with pytest.raises(KafkaError, match="epoch 2"):
        await server(Leading(lasts=False), liveness).on_active(1)
    assert liveness.next_deadline() is None
