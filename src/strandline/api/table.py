"""Every API we serve: dispatch, ApiVersions and `docs/apis.md` all come from this table.

Always true: an API that stands here is served in every version it names; one that does not is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from strandline.api import (
    api_versions,
    fetch,
    produce,
)

API_VERSIONS = 18


class Api(NamedTuple):
    key: int
    name: str
    versions: range
    handle: Callable[..., Any]
    raw: bool
    """Takes the frame itself and the position of its body instead of a decoded request."""
    doc: str


def _api(module: ModuleType) -> Api:
    doc = module.__doc__ or ""
    return Api(module.KEY, doc.partition(" (")[0], module.VERSIONS, module.handle, getattr(module, "RAW", False), doc)


APIS: dict[int, Api] = {
    api.key: api
    for api in map(
        _api,
        (
            produce,
            fetch,
            api_versions,
        ),
    )
}


def unsupported_version() -> Any:
    """The answer to an ApiVersions request that is newer than we are."""
    return api_versions.refusal(APIS.values())
