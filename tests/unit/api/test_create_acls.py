"""CreateAcls: there is no authorizer."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import create_acls
from strandline.errors import ErrorCode
from strandline.wire import messages

Creation = messages.request(create_acls.KEY).AclCreation


@pytest.mark.parametrize("version", create_acls.VERSIONS)
async def test_each_is_refused_and_nothing_is_written(broker, version):
    before = list(broker.committed)
    wanted = [Creation(resource_type=2, resource_name=name, principal="User:a", host="*") for name in ("t", "u")]
    reply = await broker.call(create_acls, version, creations=wanted)
    assert [(each.error_code, each.error_message) for each in reply.results] == [
        (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    ] * 2
    assert broker.committed == before
    assert (await broker.call(create_acls, version, creations=[])).results == []
