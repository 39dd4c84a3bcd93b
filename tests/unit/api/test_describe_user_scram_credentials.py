"""DescribeUserScramCredentials: none, but for those that Kafka left."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import pytest

from strandline.api import describe_user_scram_credentials
from strandline.errors import ErrorCode
from strandline.metadata import records as r
from strandline.wire import messages

User = messages.request(describe_user_scram_credentials.KEY).UserName


async def described(broker, *names, listener="PLAINTEXT"):
    users = [User(name=name) for name in names]
    return await broker.call(describe_user_scram_credentials, 0, listener, users=users)


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
async def test_there_are_none(broker, listener):
    for users in (None, []):
        reply = await broker.call(describe_user_scram_credentials, 0, listener, users=users)
        assert (reply.error_code, reply.results) == (0, [])


async def test_a_named_user_without_credentials_is_not_found_and_one_named_twice_refused(broker):
    reply = await described(broker, "a", "b", "a", "")
    assert reply.error_code == 0
    assert {each.user: (each.error_code, each.error_message) for each in reply.results} == {
        "a": (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: a",
        ),
        "b": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to describe a user credential that does not exist: b"),
        "": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to describe a user credential that does not exist: "),
    }
    assert len(reply.results) == 3


async def test_what_kafka_left_is_described(broker):
    kept = {"salt": b"s", "stored_key": b"k", "server_key": b"v"}
    broker.commit(
        [
            r.UserScramCredentialRecord(name="b", mechanism=1, iterations=4096, **kept),
            r.UserScramCredentialRecord(name="a", mechanism=1, iterations=8192, **kept),
            r.UserScramCredentialRecord(name="a", mechanism=2, iterations=4096, **kept),
        ]
    )
    for reply in (await described(broker), await described(broker, "a", "b")):
        assert [
            (each.user, [(c.mechanism, c.iterations) for c in each.credential_infos]) for each in reply.results
        ] == [
            ("a", [(1, 8192), (2, 4096)]),
            ("b", [(1, 4096)]),
        ]
