"""The controller as an API reaches it: this node's place in the quorum, and the way to the active controller.

Always true: what is decided through `decide` is committed before its answer comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.raft.messages import Request, Response

if TYPE_CHECKING:
    from strandline.controller.liveness import Liveness
    from strandline.raft.replicas import QuorumDescription
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

T = TypeVar("T")
R = TypeVar("R", bound="ApiResponse")


class Decider(Protocol):
    """Takes decisions of the active controller."""

    def __call__(
        self,
        decision: Callable[
            [MetadataImage], tuple[list[MetadataRecord], T] | Generator[int, None, tuple[list[MetadataRecord], T]]
        ],
    ) -> Awaitable[T]:
        """Have `decision` make records and an answer from the newest image; the answer comes once the records are
        committed. What it raises is raised, and nothing is written. No records: nothing is written. One that may take
        long is a generator, which pauses between its parts."""


class Asker(Protocol):
    """Sends the active controller requests in this node's own name."""

    def __call__(self, api_key: int, message: ApiRequest[R], /) -> Awaitable[R]: ...


class QuorumMember(Protocol):
    """This node in the quorum of controllers, as a voter or as an observer."""

    @property
    def is_active(self) -> bool:
        """This node is the active controller."""

    @property
    def leader(self) -> tuple[int, int]:
        """The epoch, and the id of its leader, -1 if that is not known."""

    @property
    def kraft_version(self) -> int: ...

    @property
    def committed(self) -> MetadataImage:
        """The newest committed metadata, which the broker in this node may not have acted on yet."""

    def submit(self, request: Request, answer: Callable[[Response], None]) -> None:
        """Have Raft answer a request of a peer, a broker or a person; `answer` is called once."""

    def cancel(self, answer: Callable[[Response], None]) -> None:
        """The request that `answer` belongs to is not waiting any more."""

    def describe(self) -> QuorumDescription: ...


@dataclass(slots=True)
class ControllerAccess:
    quorum: QuorumMember
    decide: Decider
    liveness: Liveness
    """Which brokers are alive, as the active controller sees them."""
    ask: Asker
    forward: Callable[[bytes, bytes, bytes], Awaitable[bytes]]
    """Pass a client's request on to the active controller: its frame, principal and host, to the response's frame."""
