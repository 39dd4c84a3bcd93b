"""From a stage to what a frame shows of it: lanes of logs, and the partitions as the controller has them.

Always true: a lane shows what the broker itself holds and believes; whether it is in sync is the controller's word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.stories.actors import Actor, Held
from strandline.stories.frames import Controlled, Lane, Mark, Message, Quorum, Role, Row, Wrong
from strandline.stories.options import Option

if TYPE_CHECKING:
    from strandline.stories.stage import Stage

TOPIC, METADATA = "topic", "metadata"

_QUORUM_ROLES = {
    "leader": Role.LEADER,
    "follower": Role.FOLLOWER,
    "observer": Role.OBSERVER,
    "candidate": Role.CANDIDATE,
    "prospective": Role.CANDIDATE,
    "voted": Role.FOLLOWER,
    "unattached": Role.FOLLOWER,
    "resigned": Role.FOLLOWER,
}


class Looking:
    def __init__(self, stage: Stage, partitions: Sequence[int], lanes: str) -> None:
        self.partitions = partitions
        self._stage = stage
        self._lanes = lanes
        self._metadata_from = 0
        self._actors: Sequence[str] = ()
        self._offsets: dict[str, int] = {}
        """Where a message was first seen: a lost one is shown there."""

    def show(self, lanes: str | None, metadata_from: int | None, actors: Sequence[str]) -> None:
        self._lanes = lanes or self._lanes
        self._metadata_from = self._metadata_from if metadata_from is None else metadata_from
        self._actors = actors

    # Lanes

    def lanes(self, wrong: Sequence[Wrong]) -> tuple[Lane, ...]:
        stage = self._stage
        everyone = stage.brokers if self._lanes == TOPIC else stage.actors
        actors = [everyone[name] for name in self._actors] if self._actors else list(everyone.values())
        return tuple(self._lane(actor, wrong) for actor in actors)

    def _lane(self, actor: Actor, wrong: Sequence[Wrong]) -> Lane:
        if self._lanes == METADATA:
            rows: tuple[Row, ...] = (self._metadata_row(actor),)
        else:
            rows = tuple(row for p in self.partitions if (row := self._row(actor, p, wrong)) is not None)
        return Lane(actor.name, actor.is_paused, rows)

    def _row(self, actor: Actor, partition: int, wrong: Sequence[Wrong]) -> Row | None:
        state = self._stage.state(partition)
        if state is not None and actor.id not in state.replicas:
            return None
        replica = actor.replica(partition)
        if not actor.is_up:
            role = Role.DOWN
        elif replica is None:
            role = Role.STARTING
        elif replica.leads:
            is_current = state is None or replica.leader_epoch >= state.leader_epoch
            role = Role.LEADER if is_current else Role.OLD_LEADER
        else:
            role = Role.FOLLOWER
        has_epochs = not self._stage.has(Option.WITHOUT_LEADER_EPOCHS)
        held, end = actor.held(partition), actor.end_of(partition)
        return Row(
            f"p{partition}" if len(self.partitions) > 1 else "",
            role,
            state is not None and actor.id not in state.isr,
            replica.leader_epoch if replica is not None and has_epochs else None,
            self._messages(held, end, wrong, has_epochs),
            0 if replica is None else replica.log.log_start_offset,
            end,
            actor.high_watermark_of(partition),
        )

    def _messages(self, held: list[Held], end: int, wrong: Sequence[Wrong], has_epochs: bool) -> tuple[Message, ...]:
        counts = Counter(message.name for message in held)
        marked = {(one.mark, one.what) for one in wrong}
        messages = []
        for offset, name, epoch in held:
            self._offsets.setdefault(name, offset)
            mark = Mark.NONE
            if (Mark.LOST, name) in marked:
                mark = Mark.LOST
            elif (Mark.DOUBLED, name) in marked and counts[name] > 1:
                mark = Mark.DOUBLED
            elif (Mark.REORDERED, name) in marked:
                mark = Mark.REORDERED
            elif (Mark.DIVERGED, str(offset)) in marked:
                mark = Mark.DIVERGED
            messages.append(Message(offset, name, epoch if has_epochs else None, mark))
        for one in wrong:
            offset = self._offsets.get(one.what, -1)
            if one.mark is Mark.LOST and offset == end:
                messages.append(Message(offset, one.what, None, Mark.LOST, is_ghost=True))
        return tuple(messages)

    def _metadata_row(self, actor: Actor) -> Row:
        role = Role.DOWN
        if actor.is_up:
            role = _QUORUM_ROLES.get(actor.quorum_role, Role.STARTING)
            if role is Role.FOLLOWER and actor.name not in self._stage.controllers:
                role = Role.OBSERVER
        messages = tuple(
            Message(held.offset, held.name, held.epoch)
            for held in actor.metadata_held()
            if held.offset >= self._metadata_from
        )
        return Row(
            "",
            role,
            False,
            actor.quorum_epoch if actor.is_up else None,
            messages,
            actor.metadata_start,
            actor.metadata_end,
            actor.metadata_high_watermark,
            tuple(actor.snapshots),
        )

    def quorum(self) -> Quorum | None:
        if self._lanes != METADATA:
            return None
        controllers = self._stage.controllers
        epoch = max(actor.quorum_epoch for actor in controllers.values())
        return Quorum(self._stage.active_controller, epoch, tuple(controllers))

    # The controller

    def controlled(self) -> tuple[Controlled, ...]:
        stage = self._stage
        found = []
        for partition in self.partitions:
            state = stage.state(partition)
            if state is None:
                continue

            def names(ids: Sequence[int]) -> tuple[str, ...]:
                return tuple(stage.name_of(node_id) or str(node_id) for node_id in ids)

            found.append(
                Controlled(
                    f"{stage.topic}-{partition}",
                    stage.name_of(state.leader),
                    None if stage.has(Option.WITHOUT_LEADER_EPOCHS) else state.leader_epoch,
                    names(state.isr),
                    names([replica for replica in state.replicas if replica not in state.isr]),
                    names(state.elr),
                )
            )
        return tuple(found)
