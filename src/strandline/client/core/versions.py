"""Which version of each API the two sides speak, from the broker's ApiVersions answer.

A client asks in its own newest version. A broker that does not know it answers UNSUPPORTED_VERSION in version 0, and
names the versions of ApiVersions it does know; the client then asks again, once.

Always true: a version that is picked is one that both sides know; one that Kafka may still change is picked only if it is named.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline import __version__
from strandline.client.errors import UnsupportedApi
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.wire import messages
from strandline.wire.headers import API_VERSIONS

SOFTWARE_NAME = "strandline"
NEWEST = 4
STABLE_MAX: Final = {22: 5}
"""Newer versions of these APIs may still change: InitProducerId 6 (KIP-939)."""


class FinalizedFeatures(NamedTuple):
    """What the whole cluster may use, as one broker knew it at an epoch."""

    epoch: int
    """-1: it did not say."""
    levels: dict[str, int]


class ApiVersions:
    """What one broker serves."""

    __slots__ = ("_picked", "_served", "features")

    def __init__(self, served: dict[int, range], features: FinalizedFeatures) -> None:
        self.features = features
        self._served = served
        self._picked: dict[tuple[int, int | None, int], int] = {}

    def pick(self, api_key: int, version_max: int | None = None, version_min: int = 0) -> int:
        """The newest version in common between these two; UnsupportedApi if there is none."""
        picked = self._picked.get((api_key, version_max, version_min))
        if picked is None:
            picked = self._newest_common(api_key, version_max, version_min)
            self._picked[api_key, version_max, version_min] = picked
        return picked

    def serves(self, api_key: int) -> bool:
        return api_key in self._served

    def _newest_common(self, api_key: int, version_max: int | None, version_min: int) -> int:
        known = messages.request_family(api_key).versions
        ours = range(max(known.start, version_min), known.stop)
        version_max = STABLE_MAX.get(api_key) if version_max is None else version_max
        theirs = self._served.get(api_key)
        if theirs is None:
            raise UnsupportedApi(api_key, ours, None)
        newest = min(ours.stop, theirs.stop) - 1
        if version_max is not None:
            newest = min(newest, version_max)
        if newest < max(ours.start, theirs.start):
            raise UnsupportedApi(api_key, ours, theirs)
        return newest


def question(version: int) -> bytes:
    message = messages.request(API_VERSIONS)(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
    return messages.encode_request(API_VERSIONS, version, message)


def answer(version: int, body: bytes) -> ApiVersions | int:
    """What the broker serves, or the version in which to ask again."""
    if int.from_bytes(body[:2], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION:
        refused = messages.decode_response(API_VERSIONS, 0, body)
        known = [entry.max_version for entry in refused.api_keys if entry.api_key == API_VERSIONS]
        again = min(known[0], version - 1) if known else 0
        if version == 0 or again < 0:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "the broker speaks no version of ApiVersions that we do")
        return again
    message = messages.decode_response(API_VERSIONS, version, body)
    code = error_code(message.error_code)
    if code is not ErrorCode.NONE:
        raise KafkaError(code, "the broker refused ApiVersions")
    levels = {feature.name: feature.max_version_level for feature in message.finalized_features}
    return ApiVersions(
        {entry.api_key: range(entry.min_version, entry.max_version + 1) for entry in message.api_keys},
        FinalizedFeatures(message.finalized_features_epoch, levels),
    )
