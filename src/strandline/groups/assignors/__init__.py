"""Server-side assignors of the consumer protocol: which member gets which partition.

Always true: every partition of a topic that a member subscribes to has one owner, who subscribes to it; the same spec
gives the same assignment, whatever the order or the hashes of what is in it.
"""

from __future__ import annotations

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.assignors.range import RangeAssignor
from strandline.groups.assignors.spec import Assignor
from strandline.groups.assignors.uniform import UniformAssignor

_ASSIGNORS: dict[str, Assignor] = {assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())}


def names() -> tuple[str, ...]:
    return tuple(_ASSIGNORS)


def by_name(name: str) -> Assignor:
    """The assignor of this name; UNSUPPORTED_ASSIGNOR if there is none."""
    assignor = _ASSIGNORS.get(name)
    if assignor is None:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {name} is not supported. Supported assignors: {', '.join(_ASSIGNORS)}.",
        )
    return assignor
