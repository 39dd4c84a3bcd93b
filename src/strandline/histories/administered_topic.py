"""A topic that a client administers: what it asked the cluster for, what was acknowledged, and what that leaves
possible.

Every topic name belongs to one client, which does one thing at a time. An attempt whose answer was lost may take effect
at any later time: its bytes may still be on the way. So a name is either known to be as last acknowledged, or as some
attempt with an unknown outcome would leave it.

Always true: what is acknowledged is in every later image, until the same client undoes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.ids import Uuid
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage

CONFIG_KEY = "retention.ms"


@dataclass(slots=True)
class AdministeredTopic:
    name: str
    topic_id: Uuid | None = None
    """As acknowledged; None if only a retry showed that it is there."""
    present: bool = False
    """As last acknowledged."""
    value: str | None = None
    """Of CONFIG_KEY, as last acknowledged."""
    maybe_created: bool = False
    maybe_deleted: bool = False
    maybe_values: set[str] = field(default_factory=set)

    @property
    def is_surely_present(self) -> bool:
        return self.present and not self.maybe_deleted

    @property
    def is_surely_absent(self) -> bool:
        return not self.present and not self.maybe_created

    def judge(self, image: MetadataImage) -> list[str]:
        there = image.topics.get(self.name)
        if there is None:
            return [f"lost: {self} is not in the image at {image.end_offset}"] if self.is_surely_present else []
        if self.is_surely_absent:
            return [f"resurrected: {self} is in the image at {image.end_offset}"]
        found = []
        unsure = self.maybe_created or self.maybe_deleted
        if self.topic_id is not None and not unsure and there.topic_id != self.topic_id:
            found.append(f"replaced: {self} has id {there.topic_id} in the image at {image.end_offset}")
        value = image.config(TOPIC_RESOURCE, self.name).get(CONFIG_KEY)
        if not unsure and value not in {self.value, *self.maybe_values}:
            found.append(f"lost: {self} has {CONFIG_KEY}={value} in the image at {image.end_offset}")
        return found
