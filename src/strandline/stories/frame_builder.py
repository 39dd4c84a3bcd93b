"""From a stage to what a frame shows of it: lanes of logs, and the partitions as the controller has them.

Always true: a lane shows what the broker itself holds and believes; whether it is in sync is the controller's word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.stories.frames import (
    Anomaly,
    AnomalyKind,
    Lane,
    ShownLog,
    ShownPartition,
    ShownQuorum,
    ShownRecord,
    ShownRole,
)
from strandline.stories.nodes import LoggedRecord, StageNode
from strandline.stories.options import Option

if TYPE_CHECKING:
    from strandline.stories.stage import Stage

TOPIC, METADATA = "topic", "metadata"

_QUORUM_ROLES = {
    "leader": ShownRole.LEADER,
    "follower": ShownRole.FOLLOWER,
    "observer": ShownRole.OBSERVER,
    "candidate": ShownRole.CANDIDATE,
    "prospective": ShownRole.CANDIDATE,
    "voted": ShownRole.FOLLOWER,
    "unattached": ShownRole.FOLLOWER,
    "resigned": ShownRole.FOLLOWER,
}


class FrameBuilder:
    def __init__(self, stage: Stage, partitions: Sequence[int], lanes: str) -> None:
        self.partitions = partitions
        self._stage = stage
        self._lanes = lanes
        self._metadata_from = 0
        self._nodes: Sequence[str] = ()
        self._offsets: dict[str, int] = {}
        """Where a message was first seen: a lost one is shown there."""

    def show(self, lanes: str | None, metadata_from: int | None, nodes: Sequence[str]) -> None:
        self._lanes = lanes or self._lanes
        self._metadata_from = self._metadata_from if metadata_from is None else metadata_from
        self._nodes = nodes

    # Lanes

    def lanes(self, wrong: Sequence[Anomaly]) -> tuple[Lane, ...]:
        stage = self._stage
        everyone = stage.brokers if self._lanes == TOPIC else stage.nodes
        nodes = [everyone[name] for name in self._nodes] if self._nodes else list(everyone.values())
        return tuple(self._lane(node, wrong) for node in nodes)

    def _lane(self, node: StageNode, wrong: Sequence[Anomaly]) -> Lane:
        if self._lanes == METADATA:
            rows: tuple[ShownLog, ...] = (self._metadata_row(node),)
        else:
            rows = tuple(row for p in self.partitions if (row := self._row(node, p, wrong)) is not None)
        return Lane(node.name, node.is_paused, rows)

    def _row(self, node: StageNode, partition: int, wrong: Sequence[Anomaly]) -> ShownLog | None:
        state = self._stage.state(partition)
        if state is not None and node.id not in state.replicas:
            return None
        replica = node.replica(partition)
        if not node.is_up:
            role = ShownRole.DOWN
        elif replica is None:
            role = ShownRole.STARTING
        elif replica.leads:
            is_current = state is None or replica.leader_epoch >= state.leader_epoch
            role = ShownRole.LEADER if is_current else ShownRole.OLD_LEADER
        else:
            role = ShownRole.FOLLOWER
        has_epochs = not self._stage.has(Option.WITHOUT_LEADER_EPOCHS)
        held, end = node.held(partition), node.end_of(partition)
        return ShownLog(
            f"p{partition}" if len(self.partitions) > 1 else "",
            role,
            state is not None and node.id not in state.isr,
            replica.leader_epoch if replica is not None and has_epochs else None,
            self._messages(held, end, wrong, has_epochs),
            0 if replica is None else replica.log.log_start_offset,
            end,
            node.high_watermark_of(partition),
            None if self._stage.has(Option.WITHOUT_LAST_STABLE_OFFSET) else node.last_stable_of(partition),
        )

    def _messages(
        self, held: list[LoggedRecord], end: int, wrong: Sequence[Anomaly], has_epochs: bool
    ) -> tuple[ShownRecord, ...]:
        counts = Counter(message.name for message in held)
        marked = {(one.mark, one.what) for one in wrong}
        messages = []
        for offset, name, epoch in held:
            self._offsets.setdefault(name, offset)
            mark = AnomalyKind.NONE
            if (AnomalyKind.LOST, name) in marked:
                mark = AnomalyKind.LOST
            elif (AnomalyKind.DOUBLED, name) in marked and counts[name] > 1:
                mark = AnomalyKind.DOUBLED
            elif (AnomalyKind.REORDERED, name) in marked:
                mark = AnomalyKind.REORDERED
            elif (AnomalyKind.DIRTY, name) in marked:
                mark = AnomalyKind.DIRTY
            elif (AnomalyKind.DIVERGED, str(offset)) in marked:
                mark = AnomalyKind.DIVERGED
            messages.append(ShownRecord(offset, name, epoch if has_epochs else None, mark))
        for one in wrong:
            offset = self._offsets.get(one.what, -1)
            if one.mark is AnomalyKind.LOST and offset == end:
                messages.append(ShownRecord(offset, one.what, None, AnomalyKind.LOST, is_ghost=True))
        return tuple(messages)

    def _metadata_row(self, node: StageNode) -> ShownLog:
        role = ShownRole.DOWN
        if node.is_up:
            role = _QUORUM_ROLES.get(node.quorum_role, ShownRole.STARTING)
            if role is ShownRole.FOLLOWER and node.name not in self._stage.controllers:
                role = ShownRole.OBSERVER
        messages = tuple(
            ShownRecord(held.offset, held.name, held.epoch)
            for held in node.metadata_held()
            if held.offset >= self._metadata_from
        )
        return ShownLog(
            "",
            role,
            False,
            node.quorum_epoch if node.is_up else None,
            messages,
            node.metadata_start,
            node.metadata_end,
            node.metadata_high_watermark,
            snapshots=tuple(node.snapshots),
        )

    def quorum(self) -> ShownQuorum | None:
        if self._lanes != METADATA:
            return None
        controllers = self._stage.controllers
        epoch = max(node.quorum_epoch for node in controllers.values())
        return ShownQuorum(self._stage.active_controller, epoch, tuple(controllers))

    # The controller

    def controlled(self) -> tuple[ShownPartition, ...]:
        stage = self._stage
        found = []
        for partition in self.partitions:
            state = stage.state(partition)
            if state is None:
                continue

            def names(ids: Sequence[int]) -> tuple[str, ...]:
                return tuple(stage.name_of(node_id) or str(node_id) for node_id in ids)

            found.append(
                ShownPartition(
                    f"{stage.topic}-{partition}",
                    stage.name_of(state.leader),
                    None if stage.has(Option.WITHOUT_LEADER_EPOCHS) else state.leader_epoch,
                    names(state.isr),
                    names([replica for replica in state.replicas if replica not in state.isr]),
                    names(state.elr),
                )
            )
        return tuple(found)
