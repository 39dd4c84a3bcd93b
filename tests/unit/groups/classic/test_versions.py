"""A member's whole life in every version of its requests, as bytes."""

# mypy: disable-error-code="arg-type, dict-item"

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import ErrorCode
from strandline.groups.caller import Caller
from strandline.wire import messages
from tests.unit.groups.classic.transcript import subscription
from tests.unit.groups.driver import Driver

OPERATIONS = {"join_group": 11, "heartbeat": 12, "leave_group": 13, "sync_group": 14}
DESCRIBE_GROUPS = 15


class Member:
    def __init__(self, driver: Driver, version: int) -> None:
        self.driver = driver
        self.version = version
        self.member_id = ""

    def ask(self, operation: str, seconds: float = 0, **values: Any) -> Any:
        """The response as the member reads it, after so much time."""
        key = OPERATIONS[operation]
        version = min(self.version, messages.request_family(key).versions[-1])
        sent = messages.encode_request(key, version, messages.request(key)(group_id="g", **values))
        call = self.driver.call(operation, messages.decode_request(key, version, sent), version, client_id="app")
        self.driver.advance(seconds)
        assert call.is_answered
        return messages.decode_response(key, version, messages.encode_response(key, version, call.response))

    def join(self) -> Any:
        protocol = messages.request(11).JoinGroupRequestProtocol(name="range", metadata=subscription("t"))
        joined = self.ask(
            "join_group",
            3,
            session_timeout_ms=10_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[protocol],
        )
        self.member_id = joined.member_id
        return joined


@pytest.mark.parametrize("version", range(10))
def test_a_life(version: int) -> None:
    driver = Driver()
    member = Member(driver, version)
    if version >= 4:
        assert member.join().error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = member.join()
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert joined.protocol_type == ("consumer" if version >= 7 else None)
    assert joined.leader == member.member_id
    assert [(one.member_id, one.metadata) for one in joined.members] == [(member.member_id, subscription("t"))]

    who = {"generation_id": 1, "member_id": member.member_id}
    assignment = messages.request(14).SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"0")
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    synced = member.ask("sync_group", assignments=[assignment], **who, **protocol)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"0")
    assert member.ask("heartbeat", **who).error_code == ErrorCode.NONE

    describe_version = min(version, 6)
    described = driver.shard.describe_group("g", Caller("admin", "/127.0.0.1", describe_version))
    response = messages.response(DESCRIBE_GROUPS)(groups=[described])
    read = messages.decode_response(
        DESCRIBE_GROUPS, describe_version, messages.encode_response(DESCRIBE_GROUPS, describe_version, response)
    )
    assert read.groups[0].group_state == "Stable"
    assert read.groups[0].members[0].client_id == "app"

    leaving = {"member_id": member.member_id}
    if version >= 3:
        leaving = {"members": [messages.request(13).MemberIdentity(member_id=member.member_id)]}
    left = member.ask("leave_group", **leaving)
    assert left.error_code == ErrorCode.NONE
    assert [one.error_code for one in left.members] == ([ErrorCode.NONE] if version >= 3 else [])
    assert driver.shard.groups["g"].is_empty()
