"""The file `quorum-state`: the epoch, its leader and the vote of this node, on the device (rule D1).

Always true: after a crash it holds the state before or the state after, never half of one. One that can't be read is not
guessed at: a node that forgot its vote may vote twice, so it does not start.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from strandline.node.log_dirs import StorageError
from strandline.ports import Disk
from strandline.raft.election_state import ElectionState, MalformedState, decode, encode

QUORUM_STATE = "quorum-state"


class ElectionFile:
    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{QUORUM_STATE}"

    def read(self) -> ElectionState:
        """A node without the file has never voted. Blocks."""
        if not self._disk.exists(self._path):
            return ElectionState()
        try:
            return decode(self._disk.read_file(self._path))
        except MalformedState as error:
            raise StorageError(
                f"{self._path} can't be read ({error}): put it back from a copy, or take this node out of the quorum, "
                "empty its metadata log dir and let it in again"
            ) from None

    def names_only(self, node_id: int) -> bool:
        """Whether this node is the only voter that a file of version 0 lists: it was a quorum of one. Blocks."""
        if not self._disk.exists(self._path):
            return False
        listed = json.loads(self._disk.read_file(self._path)).get("currentVoters") or []
        return [voter.get("voterId") for voter in listed] == [node_id]

    def write(self, state: ElectionState, kraft_version: int, voter_ids: Sequence[int]) -> None:
        """On the device when it returns. Blocks."""
        self._disk.write_file(self._path, encode(state, kraft_version=kraft_version, voter_ids=voter_ids))
