"""Where the controllers are."""

from __future__ import annotations

import pytest

from strandline.config.errors import ConfigError
from strandline.config.quorum import BootstrapServer, Voter, check_membership, parse_bootstrap_servers, parse_voters


def test_voters_and_servers_are_read() -> None:
    assert parse_voters(["1@a:9093", "2@[::1]:9094"]) == (Voter(1, "a", 9093), Voter(2, "::1", 9094))
    assert parse_bootstrap_servers(["a:9093"]) == (BootstrapServer("a", 9093),)


@pytest.mark.parametrize(
    "text", ["a:9093", "x@a:9093", "1@a", "1@:9093", "-1@a:9", "9999999999@a:9", "1@a:70000", "²@a:1"]
)
def test_what_is_no_voter_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"controller.quorum.voters"):
        parse_voters([text])


def test_no_id_votes_twice() -> None:
    with pytest.raises(ConfigError, match=r"twice"):
        parse_voters(["1@a:1", "1@b:1"])


def test_a_node_must_find_its_quorum() -> None:
    voters = parse_voters(["1@a:1"])
    check_membership(1, True, voters, ())
    check_membership(5, True, (), parse_bootstrap_servers(["a:1"]))
    with pytest.raises(ConfigError, match=r"where the controllers are"):
        check_membership(1, True, (), ())
    with pytest.raises(ConfigError, match=r"must contain this controller, node.id 2"):
        check_membership(2, True, voters, ())
    with pytest.raises(ConfigError, match=r"process.roles does not say controller"):
        check_membership(1, False, voters, ())
