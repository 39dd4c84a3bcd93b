"""The level of the feature transaction.version, changed while a cluster is at work."""

from __future__ import annotations

from strandline.client.blocking import Admin, Client
from strandline.wire.feature_upgrades import FeatureUpgradeType
from tests.system.local import Cluster
from tests.system.server import eventually


def set_transaction_version(cluster: Cluster, level: int) -> None:
    """Raise or lower it, and wait until every broker knows."""
    with Client(cluster.bootstrap) as client:
        admin = Admin(client)

        def known(node_id: int) -> int:
            features = admin.describe_features(node_id).features
            return next(each.finalized_level for each in features if each.name == "transaction.version")

        before = known(1)
        if level != before:
            kind = FeatureUpgradeType.UPGRADE if level > before else FeatureUpgradeType.SAFE_DOWNGRADE
            assert admin.update_features({"transaction.version": level}, kind) == {"transaction.version": None}
        for node_id in range(1, cluster.nodes + 1):
            eventually(lambda node_id=node_id: known(node_id) == level, f"node {node_id} has level {level}")  # type: ignore[misc]
