"""The current configuration of a running node: the one place that says which values are in force.

A part of the node that needs a value that may change while it runs holds this object and reads `current` whenever it needs one. A
part that needs only values that are fixed at the start may take the `NodeConfig` itself.

Always true: there is one such object for a node; a configuration is replaced as a whole, by `update`, and never goes back to one
that is older.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.config.node import NodeConfig


class DynamicConfig:
    __slots__ = ("_current",)

    def __init__(self, config: NodeConfig) -> None:
        """`config`: as given at the start, by the file, the environment and the command line."""
        self._current = config

    @property
    def current(self) -> NodeConfig:
        return self._current

    def update(self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]) -> bool:
        """Put these dynamic values in force: the cluster's defaults, and those of this broker. Whether anything changed."""
        layers = self._current.layers
        if (dynamic_default, dynamic_broker) == (layers.dynamic_default, layers.dynamic_broker):
            return False
        self._current = self._current.with_dynamic(dynamic_default, dynamic_broker)
        return True
