"""The voters of the quorum, and how they changed along the log.

Always true: a set has each id once; two sets that follow each other differ by one voter, so their majorities overlap. The
set at the end of the log is in force, committed or not (KIP-853); truncating the log brings the one before it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from strandline.ids import ZERO_UUID
from strandline.raft.messages import Address, Endpoints, ReplicaKey


class VoterNode(NamedTuple):
    key: ReplicaKey
    endpoints: Endpoints
    kraft_versions: range = range(1)

    @property
    def address(self) -> Address:
        return next(iter(self.endpoints.values()))


class VoterSet:
    __slots__ = ("_nodes",)

    def __init__(self, nodes: Iterable[VoterNode] = ()) -> None:
        self._nodes = {node.key.id: node for node in nodes}

    def __iter__(self) -> Iterator[VoterNode]:
        return iter(self._nodes.values())

    def __len__(self) -> int:
        return len(self._nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._nodes == other._nodes

    def __hash__(self) -> int:
        return hash(tuple(self.ids))

    @property
    def ids(self) -> list[int]:
        return list(self._nodes)

    @property
    def majority(self) -> int:
        """So many votes decide."""
        return len(self._nodes) // 2 + 1

    def get(self, node_id: int) -> VoterNode | None:
        return self._nodes.get(node_id)

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether this replica votes; where the set does not know the voter's directory, the id is enough."""
        node = self._nodes.get(key.id)
        return node is not None and node.key.directory_id in (ZERO_UUID, key.directory_id)
