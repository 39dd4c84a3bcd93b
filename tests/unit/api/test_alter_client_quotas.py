"""AlterClientQuotas: nothing is promised that is not kept."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import alter_client_quotas
from strandline.errors import ErrorCode
from strandline.metadata import records as r
from strandline.wire import messages

Request = messages.request(alter_client_quotas.KEY)
RATE = "producer_byte_rate"


def entry(*ops, kind="user", name="a"):
    return Request.EntryData(
        entity=[Request.EntityData(entity_type=kind, entity_name=name)] if kind else [],
        ops=[Request.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


@pytest.mark.parametrize("version", alter_client_quotas.VERSIONS)
async def test_setting_is_refused_with_the_reason_and_removing_what_is_not_there_succeeds(broker, version):
    before = list(broker.committed)
    reply = await broker.call(
        alter_client_quotas,
        version,
        entries=[
            entry((RATE, 1000.0)),
            entry((RATE, None), name=None),
            entry((RATE, None), ("consumer_byte_rate", 5.0), name="b"),
            entry((RATE, None), kind="x"),
            entry((RATE, None), kind=""),
        ],
    )
    assert [(each.error_code, [part.entity_name for part in each.entity]) for each in reply.entries] == [
        (ErrorCode.UNSUPPORTED_VERSION, ["a"]),
        (0, [None]),
        (ErrorCode.UNSUPPORTED_VERSION, ["b"]),
        (ErrorCode.INVALID_REQUEST, ["a"]),
        (ErrorCode.INVALID_REQUEST, []),
    ]
    messages_ = [each.error_message for each in reply.entries]
    assert messages_[0] == f"{RATE} can't be changed: client quotas are not enforced yet."
    assert messages_[2].startswith("consumer_byte_rate can't be changed")
    assert broker.committed == before


async def test_removing_what_kafka_left_is_refused(broker):
    user = (r.EntityData(entity_type="user", entity_name="a"),)
    broker.commit([r.ClientQuotaRecord(entity=user, key=RATE, value=1.0)])
    reply = await broker.call(
        alter_client_quotas, 1, entries=[entry((RATE, None)), entry(("request_percentage", None))]
    )
    assert [each.error_code for each in reply.entries] == [ErrorCode.UNSUPPORTED_VERSION, 0]
