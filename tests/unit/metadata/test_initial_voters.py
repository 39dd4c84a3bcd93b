"""Initial voters, as they are written on a command line."""

from __future__ import annotations

import pytest

from strandline.ids import Uuid
from strandline.metadata.initial_voters import InitialVoter, parse, voters_record

A, B = "MkU3OEVBNTcwNTJENDM2Qg", "AAAAAAAAAAAAAAAAAAAAVA"


def test_voters_are_parsed() -> None:
    assert parse(f"1@example.com:8082:{A}, 2@[::1]:9093:{B},") == [
        InitialVoter(1, "example.com", 8082, Uuid.parse(A)),
        InitialVoter(2, "::1", 9093, Uuid.parse(B)),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no voters were given"),
        (f"x@h:1:{A}", "is not ID@HOST:PORT:DIRECTORY_ID"),
        (f"-1@h:1:{A}", "is not ID@HOST:PORT:DIRECTORY_ID"),
        (f"1@:1:{A}", "is not ID@HOST:PORT:DIRECTORY_ID"),
        ("1@h:1", "is not ID@HOST:PORT:DIRECTORY_ID"),
        (f"1@h:99999:{A}", "99999 is no port"),
        (f"2147483648@h:1:{A}", "2147483648 is no node id"),
        ("1@h:1:short", "'short' is not a Uuid"),
        ("1@h:1:AAAAAAAAAAAAAAAAAAAAAA", "all zeros"),
        (f"1@h:1:{A},1@i:1:{B}", "id 1 was given twice"),
        (f"1@h:1:{A},2@i:1:{A}", f"directory id {A} was given twice"),
    ],
)
def test_what_is_no_voter(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as error:
        parse(text)
    assert reason in str(error.value)


def test_the_record_of_voters() -> None:
    (voter,) = voters_record([InitialVoter(7, "h", 1, Uuid.parse(A))], "CONTROLLER").voters
    (endpoint,) = voter.endpoints
    assert (voter.voter_id, str(voter.voter_directory_id)) == (7, A)
    assert (endpoint.name, endpoint.host, endpoint.port) == ("CONTROLLER", "h", 1)
    feature = voter.k_raft_version_feature
    assert (feature.min_supported_version, feature.max_supported_version) == (0, 1)
