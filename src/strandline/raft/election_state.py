"""The election state of a member of the quorum: the epoch, its leader, and for which candidate it voted.

Always true: it is on the device before any node may rely on it (rule D1), and a file in which a bit flipped is not believed. The
file is Kafka's `quorum-state`: version 0 lists the voters (kraft.version 0), version 1 names the directory of the candidate voted
for (kraft.version 1). Kafka's file has no checksum; ours is one more field, which Kafka ignores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crc32c import crc32c

from strandline.ids import ZERO_UUID, Uuid
from strandline.raft.messages import NO_NODE, ReplicaKey

CHECKSUM = "checksum"
"""Of the other fields, as they stand in the file; a file that Kafka wrote has none."""


class MalformedState(ValueError):
    """The file is not an election state."""


class ElectionState(NamedTuple):
    epoch: int = 0
    leader_id: int = NO_NODE
    voted: ReplicaKey | None = None


def encode(state: ElectionState, *, kraft_version: int, voter_ids: Sequence[int] = ()) -> bytes:
    """The bytes of `quorum-state`."""
    voted = state.voted or ReplicaKey(NO_NODE)
    fields: dict[str, object]
    if kraft_version == 0:
        fields = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
            "data_version": 0,
        }
    else:
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.id,
            "votedDirectoryId": str(voted.directory_id),
            "data_version": 1,
        }
    return _text({**fields, CHECKSUM: crc32c(_text(fields))})


def decode(data: bytes) -> ElectionState:
    try:
        fields = json.loads(data)
        checksum = fields.pop(CHECKSUM, None)
        if checksum is not None and checksum != crc32c(_text(fields)):
            raise MalformedState("its checksum does not match: the file was damaged, or changed by hand")
        voted_id = int(fields["votedId"])
        directory_id = Uuid.parse(fields["votedDirectoryId"]) if "votedDirectoryId" in fields else ZERO_UUID
        voted = None if voted_id == NO_NODE else ReplicaKey(voted_id, directory_id)
        return ElectionState(int(fields["leaderEpoch"]), int(fields["leaderId"]), voted)
    except MalformedState:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedState(f"not a quorum-state file: {error}") from None


def _text(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
