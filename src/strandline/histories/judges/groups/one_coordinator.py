"""C10, E3: in one epoch of its partition of `__consumer_offsets` a group has one coordinator: no other broker serves
it."""

from __future__ import annotations

from strandline.histories.exchanges import CoordinatorExchange
from strandline.histories.groups.observation import GroupJudge, GroupObservation, first_error
from strandline.histories.quorum_observation import Violation


class OneCoordinator(GroupJudge):
    def __init__(self) -> None:
        self._by_epoch: dict[int, int] = {}

    def answered(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        if first_error(exchange):
            return
        epoch = observed.epoch_of(exchange.broker_id)
        if epoch < 0:
            raise Violation(f"serves {observed.group_id}, and was never its coordinator (API {exchange.api_key})")
        first = self._by_epoch.setdefault(epoch, exchange.broker_id)
        if first != exchange.broker_id:
            raise Violation(f"serves {observed.group_id} in epoch {epoch}, as n{first} did")
