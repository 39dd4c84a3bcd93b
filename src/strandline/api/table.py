"""Every API we serve: dispatch, ApiVersions and `docs/apis.md` all come from this table.

Always true: an API that stands here is served in every version it names; one that does not is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from strandline.api import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
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
            list_offsets,
            metadata,
            find_coordinator,
            api_versions,
            create_topics,
            delete_topics,
            delete_records,
            init_producer_id,
            offset_for_leader_epoch,
            describe_configs,
            alter_configs,
            describe_log_dirs,
            create_partitions,
            incremental_alter_configs,
            describe_cluster,
            describe_producers,
            list_config_resources,
            describe_topic_partitions,
        ),
    )
}


def unsupported_version() -> Any:
    """The answer to an ApiVersions request that is newer than we are."""
    return api_versions.refusal(APIS.values())
