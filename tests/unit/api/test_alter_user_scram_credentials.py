"""AlterUserScramCredentials: nothing is promised that is not kept."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from strandline.api import alter_user_scram_credentials
from strandline.errors import ErrorCode
from strandline.metadata import records as r
from strandline.wire import messages

Request = messages.request(alter_user_scram_credentials.KEY)


def deletion(name, mechanism=1):
    return Request.ScramCredentialDeletion(name=name, mechanism=mechanism)


def upsertion(name):
    return Request.ScramCredentialUpsertion(
        name=name, mechanism=1, iterations=4096, salt=b"s" * 12, salted_password=b"p" * 32
    )


async def altered(broker, deletions=(), upsertions=()):
    reply = await broker.call(alter_user_scram_credentials, 0, deletions=list(deletions), upsertions=list(upsertions))
    return {each.user: each.error_code for each in reply.results}


async def test_setting_is_refused_by_name_with_the_reason(broker):
    before = list(broker.committed)
    reply = await broker.call(
        alter_user_scram_credentials, 0, deletions=[], upsertions=[upsertion("a"), upsertion("b")]
    )
    assert [(each.user, each.error_code) for each in reply.results] == [
        ("a", ErrorCode.UNSUPPORTED_VERSION),
        ("b", ErrorCode.UNSUPPORTED_VERSION),
    ]
    assert "SASL listeners are not served yet" in reply.results[0].error_message
    assert broker.committed == before


async def test_deleting_what_is_not_there(broker):
    assert await altered(broker, [deletion("a"), deletion("b")]) == dict.fromkeys(
        ("a", "b"), ErrorCode.RESOURCE_NOT_FOUND
    )


async def test_deleting_what_kafka_left_is_refused(broker):
    broker.commit(
        [
            r.UserScramCredentialRecord(
                name="a", mechanism=1, iterations=4096, salt=b"s", stored_key=b"k", server_key=b"v"
            )
        ]
    )
    assert await altered(broker, [deletion("a")]) == {"a": ErrorCode.UNSUPPORTED_VERSION}
    assert await altered(broker, [deletion("a", 2)]) == {"a": ErrorCode.RESOURCE_NOT_FOUND}


async def test_users_named_twice_or_not_at_all(broker):
    assert await altered(broker, [deletion("a"), deletion("")], [upsertion("a"), upsertion("b")]) == {
        "a": ErrorCode.DUPLICATE_RESOURCE,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "b": ErrorCode.UNSUPPORTED_VERSION,
    }
    assert await altered(broker) == {}
