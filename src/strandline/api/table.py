"""Every API we serve: dispatch, ApiVersions and `docs/apis.md` all come from this table.

Always true: an API that stands here is served in every version it names, on the listeners it names; one that does not is
unknown. Versions that Kafka may still change are unknown, too, unless the node's configuration turns them on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from strandline.api import api_versions
from strandline.api.context import RequestContext
from strandline.api.requests import forwarding
from strandline.api.requests.error_reply import error_reply
from strandline.api.requests.pending_reply import Handled
from strandline.api.requests.wrong_listener import as_refused_on_controller
from strandline.errors import ErrorCode
from strandline.wire.message import Message

if TYPE_CHECKING:
    from strandline.wire.stubs.api_versions import ApiVersionsResponse

API_VERSIONS = 18

FILES = (
    "produce",
    "fetch",
    "list_offsets",
    "metadata",
    "offset_commit",
    "offset_fetch",
    "find_coordinator",
    "join_group",
    "heartbeat",
    "leave_group",
    "sync_group",
    "describe_groups",
    "list_groups",
    "api_versions",
    "create_topics",
    "delete_topics",
    "delete_records",
    "init_producer_id",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "end_txn",
    "write_txn_markers",
    "txn_offset_commit",
    "offset_for_leader_epoch",
    "describe_configs",
    "alter_configs",
    "describe_log_dirs",
    "alter_replica_log_dirs",
    "create_partitions",
    "delete_groups",
    "incremental_alter_configs",
    "offset_delete",
    "describe_cluster",
    "describe_producers",
    "consumer_group_heartbeat",
    "consumer_group_describe",
    "list_config_resources",
    "describe_topic_partitions",
    "sasl_handshake",
    "sasl_authenticate",
    "describe_acls",
    "create_acls",
    "delete_acls",
    "create_delegation_token",
    "renew_delegation_token",
    "expire_delegation_token",
    "describe_delegation_token",
    "describe_client_quotas",
    "alter_client_quotas",
    "describe_user_scram_credentials",
    "alter_user_scram_credentials",
    "describe_transactions",
    "list_transactions",
    "vote",
    "begin_quorum_epoch",
    "end_quorum_epoch",
    "fetch_metadata_log",
    "fetch_snapshot",
    "describe_quorum",
    "add_raft_voter",
    "remove_raft_voter",
    "update_raft_voter",
    "broker_registration",
    "broker_heartbeat",
    "unregister_broker",
    "update_features",
    "controller_registration",
    "allocate_producer_ids",
    "alter_partition",
    "elect_leaders",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "assign_replicas_to_dirs",
    "envelope",
)
"""The file of each API, below `api/`."""


class Api(NamedTuple):
    key: int
    name: str
    versions: range
    handle: Callable[..., Handled]
    raw: bool
    """Takes the frame itself and the position of its body instead of a decoded request."""
    doc: str
    listeners: tuple[str, ...] = ("broker",)
    forwarded: bool = False
    """For the active controller: a broker passes it on unless it is that itself."""
    cluster_action: bool = False
    """Only for one that may act as a broker (SEC-T6)."""
    unstable_versions: range = range(0)
    """Further versions, which Kafka may still change: served with `unstable.api.versions.enable`."""

    def versions_served(self, *, unstable: bool) -> range:
        return (
            range(self.versions.start, self.unstable_versions.stop)
            if unstable and self.unstable_versions
            else self.versions
        )


def _api(module: ModuleType) -> Api:
    doc = module.__doc__ or ""
    return Api(
        module.KEY,
        doc.partition(" (")[0],
        module.VERSIONS,
        module.handle,
        getattr(module, "RAW", False),
        doc,
        getattr(module, "LISTENERS", ("broker",)),
        getattr(module, "FORWARDED", False),
        getattr(module, "CLUSTER_ACTION", False),
        getattr(module, "UNSTABLE_VERSIONS", range(0)),
    )


def _for_brokers(api: Api) -> Api:
    """The API, refused to one that may not act as a broker."""

    def handle(request: Message, ctx: RequestContext) -> Handled:
        if ctx.may_act_as_broker:
            return api.handle(request, ctx)
        reply = error_reply(api.key, ctx.version, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if reply is None:
            raise ConnectionError(f"{api.name} version {ctx.version} is for brokers and can't tell an error")
        return reply

    assert not api.raw, f"{api.name}: a refusal is written from the decoded request"
    return api._replace(handle=handle)


def _passed_on(api: Api) -> Api:
    """The API as a broker serves it to clients."""

    def handle(frame: memoryview, ctx: RequestContext, body_position: int) -> Handled:
        whole = bytes(frame)

        def decide_or_pass_on(request: Message, ctx: RequestContext) -> Handled:
            if not ctx.node.controller.quorum.is_active:
                return forwarding.forward(whole, request, ctx)
            reply = api.handle(request, ctx)
            return forwarding.decided_here(reply, whole, request, ctx) if inspect.isawaitable(reply) else reply

        return ctx.large_requests.serve(api._replace(handle=decide_or_pass_on), whole, ctx, body_position)

    assert not api.raw, f"{api.name}: a request that is passed on is decoded where it is answered"
    return api._replace(handle=handle, raw=True)


ALL: tuple[Api, ...] = tuple(_api(import_module(f"strandline.api.{name}")) for name in FILES)
BROKER_APIS: dict[int, Api] = {
    api.key: _passed_on(api) if api.forwarded else api for api in ALL if "broker" in api.listeners
}
"""What clients and other brokers are served."""
CONTROLLER_APIS: dict[int, Api] = {
    api.key: _for_brokers(api) if api.cluster_action else api for api in ALL if "controller" in api.listeners
}
"""What the listeners of a controller serve, to brokers, other controllers, and tools that ask it directly."""


REFUSED_ON_CONTROLLER: dict[int, Api] = {
    key: as_refused_on_controller(api) for key, api in BROKER_APIS.items() if key not in CONTROLLER_APIS
}
"""What a controller's listener does not serve, with an answer that says so."""


def unsupported_version() -> ApiVersionsResponse:
    """The answer to an ApiVersions request that is newer than we are."""
    return api_versions.refusal()
