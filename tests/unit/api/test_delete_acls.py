"""DeleteAcls: there is no authorizer."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import delete_acls
from strandline.errors import ErrorCode
from strandline.wire import messages

Filter = messages.request(delete_acls.KEY).DeleteAclsFilter


@pytest.mark.parametrize("version", delete_acls.VERSIONS)
async def test_each_filter_is_refused(broker, version):
    filters = [Filter(resource_type_filter=2, resource_name_filter=name) for name in ("t", None, "u")]
    reply = await broker.call(delete_acls, version, filters=filters)
    assert [(each.error_code, each.error_message, each.matching_acls) for each in reply.filter_results] == [
        (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.", [])
    ] * 3
