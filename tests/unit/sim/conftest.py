"""A world for each of a few seeds, without the network's long delays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.sim.link import NetworkLink
from strandline.sim.world import World


@pytest.fixture(params=range(5))
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with World(request.param) as world:
        world.network.default_link = NetworkLink(spike_probability=0)
        yield world
