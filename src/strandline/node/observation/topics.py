"""What can be seen of the traffic of topics: what was written to and read from each, and all, since the node started."""

from __future__ import annotations

from collections.abc import ItemsView
from typing import TYPE_CHECKING, Protocol

from strandline.replica.topic_stats import COUNTS as COUNTS

if TYPE_CHECKING:
    from strandline.replica.topic_stats import TopicStats


class ObservedTopics(Protocol):
    """Each has the numbers that `COUNTS` names."""

    def total(self) -> TopicStats:
        """Of those too that are not here any more."""

    def items(self) -> ItemsView[str, TopicStats]:
        """By topic."""
