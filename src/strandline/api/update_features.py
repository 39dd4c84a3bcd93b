"""UpdateFeatures (57), versions 0-2: finalize features at other levels, all of them or none.

A level is refused unless every broker and controller supports it; a downgrade has to be asked for as one, and metadata.version
goes down only where nothing in the metadata could be lost.
v1 names the kind of change (v0 knew only whether a downgrade is allowed) and can validate only; v2 answers once for all features.
Left out: unsafe downgrades (Kafka refuses them too), the upgrade of kraft.version while the quorum runs.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.context import NodeContext, RequestContext
from strandline.controller.features import FeatureUpdate, QuorumFeatures, update
from strandline.errors import KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.wire import messages
from strandline.wire.feature_upgrades import FeatureUpgradeType

if TYPE_CHECKING:
    from strandline.wire.stubs.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

KEY: Final = 57
VERSIONS = range(3)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: UpdateFeaturesRequest, ctx: RequestContext) -> Awaitable[UpdateFeaturesResponse]:
    return _update([_wanted(item, ctx.version) for item in request.feature_updates], request.validate_only, ctx)


def _wanted(item: UpdateFeaturesRequest.FeatureUpdateKey, version: int) -> FeatureUpdate:
    if version == 0:
        upgrade_type: int = FeatureUpgradeType.SAFE_DOWNGRADE if item.allow_downgrade else FeatureUpgradeType.UPGRADE
    else:
        upgrade_type = item.upgrade_type
    return FeatureUpdate(item.feature, item.max_version_level, upgrade_type)


async def _update(updates: list[FeatureUpdate], validate_only: bool, ctx: RequestContext) -> UpdateFeaturesResponse:
    node, response = ctx.node, messages.response(KEY)
    min_insync_replicas = node.config.topic_config({}).min_insync_replicas

    def decision(image: MetadataImage) -> tuple[list[MetadataRecord], None]:
        records = update(image, updates, _quorum(node), min_insync_replicas=min_insync_replicas)
        return ([] if validate_only else records), None

    try:
        await node.controller.decide(decision)
    except KafkaError as error:
        return response(error_code=error.code, error_message=f"No feature was updated: {error.message}")
    results = [response.UpdatableFeatureResult(feature=wanted.name, error_message=None) for wanted in updates]
    return response(error_message=None, results=results if ctx.version <= 1 else [])


def _quorum(node: NodeContext) -> QuorumFeatures:
    voter_ids = [voter.key.id for voter in node.controller.quorum.describe().voters]
    return QuorumFeatures(node.node_id, voter_ids, node.controller.quorum.kraft_version)
