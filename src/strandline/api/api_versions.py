"""ApiVersions (18), versions 0-4: which APIs and features does this broker speak?

v1 adds the throttle time; v3 is flexible (but for its response header), names the client's software and tells of features;
v4 may tell of features whose lowest level is 0 (KAFKA-17492).
A version that is newer than ours is answered in version 0 with UNSUPPORTED_VERSION and our own range, so that the client can
ask again. Produce is advertised from version 0, or older librdkafka would not compress (KAFKA-18659); 0-2 are then refused.
Versions that Kafka may still change are advertised with `unstable.api.versions.enable` alone.
Left out: the check that a client reached the node it meant (KIP-1242, version 5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.metadata.features import KRAFT_VERSION, SUPPORTED
from strandline.metadata.image import MetadataImage
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.api_versions import ApiVersionsRequest, ApiVersionsResponse

KEY: Final = 18
VERSIONS = range(5)
LISTENERS = ("broker", "controller")

PRODUCE = 0
PRODUCE_MIN_ADVERTISED = 0

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What a client's software may be called (KIP-511)."""


def handle(request: ApiVersionsRequest, ctx: RequestContext) -> ApiVersionsResponse:
    if ctx.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return messages.response(KEY)(error_code=ErrorCode.INVALID_REQUEST)
    node = ctx.node
    is_controller = ctx.listener in node.config.controller_listener_names
    image = node.metadata.image()
    # kraft.version is not in the metadata: it belongs to the quorum, and is in its control records.
    quorum = {KRAFT_VERSION: level} if (level := node.controller.quorum.kraft_version) else {}
    ranges = _all_ranges(is_controller, unstable=node.config.unstable_api_versions_enable)
    return _answer(image, {**image.features, **quorum}, ctx.version, ranges)


def refusal() -> ApiVersionsResponse:
    """The answer to a version that is newer than we are: in version 0, and only our own range."""
    own = messages.response(KEY).ApiVersion(api_key=KEY, min_version=VERSIONS[0], max_version=VERSIONS[-1])
    return messages.response(KEY)(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])


def _answer(
    image: MetadataImage, finalized: Mapping[str, int], version: int, api_keys: list[ApiVersionsResponse.ApiVersion]
) -> ApiVersionsResponse:
    response = messages.response(KEY)
    return response(
        api_keys=api_keys,
        supported_features=[
            response.SupportedFeatureKey(name=name, min_version=levels[0], max_version=levels[-1])
            for name, levels in sorted(SUPPORTED.items())
            if levels[0] or version >= 4
        ],
        finalized_features_epoch=image.end_offset - 1,
        finalized_features=[
            response.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in sorted(finalized.items())
            if name in SUPPORTED
        ],
    )


@cache
def _all_ranges(is_controller: bool, *, unstable: bool) -> list[ApiVersionsResponse.ApiVersion]:
    # The table lists this file too, so it can only be looked at once it is complete.
    from strandline.api.table import BROKER_APIS, CONTROLLER_APIS

    apis = CONTROLLER_APIS if is_controller else BROKER_APIS
    ApiVersion = messages.response(KEY).ApiVersion
    return [
        ApiVersion(
            api_key=api.key,
            min_version=PRODUCE_MIN_ADVERTISED if api.key == PRODUCE else api.versions[0],
            max_version=api.versions_served(unstable=unstable)[-1],
        )
        for api in sorted(apis.values(), key=lambda api: api.key)
    ]
