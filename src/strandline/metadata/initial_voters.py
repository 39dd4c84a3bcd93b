"""The voters that a dynamic quorum is formatted with: `--initial-controllers` and `--standalone`.

Always true: no id occurs twice, and each voter has a directory id, which the directory of its metadata log gets too: a voter
whose directory is another one is another voter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from strandline.ids import ZERO_UUID, Uuid
from strandline.metadata.features import KRAFT_VERSION, SUPPORTED
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.data import VotersRecord

_VOTER = re.compile(
    r"(?P<id>[0-9]{1,10})@(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]{1,5}):(?P<directory>.+)"
)


class InitialVoter(NamedTuple):
    id: int
    host: str
    port: int
    directory_id: Uuid


def parse(text: str) -> list[InitialVoter]:
    """ID@HOST:PORT:DIRECTORY_ID,…; ValueError says what is wrong with which."""
    voters = [_parse(part.strip()) for part in text.split(",") if part.strip()]
    if not voters:
        raise ValueError("no voters were given")
    for name, values in (("id", [str(voter.id) for voter in voters]), ("directory id", [*map(_directory, voters)])):
        for value in values:
            if values.count(value) > 1:
                raise ValueError(f"{name} {value} was given twice")
    return voters


def _directory(voter: InitialVoter) -> str:
    return str(voter.directory_id)


def _parse(text: str) -> InitialVoter:
    match = _VOTER.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not ID@HOST:PORT:DIRECTORY_ID")
    node_id, port = int(match["id"]), int(match["port"])
    if node_id >= 2**31:
        raise ValueError(f"'{text}': {node_id} is no node id")
    if port > 65535:
        raise ValueError(f"'{text}': {port} is no port")
    directory_id = Uuid.parse(match["directory"])
    if directory_id == ZERO_UUID:
        raise ValueError(f"'{text}': a directory id that is all zeros stands for none")
    return InitialVoter(node_id, match["v6"] or match["host"], port, directory_id)


def voters_record(voters: Sequence[InitialVoter], listener: str) -> VotersRecord:
    """The VotersRecord of these voters, reached through the controller listener of this name."""
    record = messages.data("VotersRecord")
    levels = SUPPORTED[KRAFT_VERSION]
    return record(
        version=0,
        voters=[
            record.Voter(
                voter_id=voter.id,
                voter_directory_id=voter.directory_id,
                endpoints=[record.Endpoint(name=listener, host=voter.host, port=voter.port)],
                k_raft_version_feature=record.KRaftVersionFeature(
                    min_supported_version=levels[0], max_supported_version=levels[-1]
                ),
            )
            for voter in voters
        ],
    )
