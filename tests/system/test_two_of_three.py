"""Two of three nodes die, in every order, and come back: nothing that acks=all promised is lost, and all logs are the same.

The nodes are the controllers as well, so with two of them gone nothing is elected until one is back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.system.copies import assert_equal_on_disk, ends
from tests.system.load import Load, all_in_sync, in_sync, load, make_topic
from tests.system.local import Cluster, up
from tests.system.server import eventually

CHECKPOINTS_SOON = ("--config", "replica.high.watermark.checkpoint.interval.ms=500")
LEADER, FOLLOWER, OTHER = 1, 2, 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with up(tmp_path_factory.mktemp("two-of-three") / "cluster", 3, 0, *CHECKPOINTS_SOON) as started:
        yield started


def kill_both_at_once(cluster: Cluster, running: Load) -> tuple[int, int]:
    cluster.kill(LEADER)
    cluster.kill(FOLLOWER)
    return LEADER, FOLLOWER


def kill_the_leader_then_the_next(cluster: Cluster, running: Load) -> tuple[int, int]:
    cluster.kill(LEADER)
    running.more()
    cluster.kill(FOLLOWER)
    return LEADER, FOLLOWER


def kill_a_follower_then_the_leader(cluster: Cluster, running: Load) -> tuple[int, int]:
    cluster.kill(FOLLOWER)
    running.more()
    cluster.kill(LEADER)
    return FOLLOWER, LEADER


def kill_the_followers_and_go_on(cluster: Cluster, running: Load) -> tuple[int, int]:
    """Killed a while apart: the first has left the ISR, the second can leave it only when there is a controller again."""
    cluster.kill(FOLLOWER)
    left = cluster.without(FOLLOWER)
    eventually(lambda: in_sync(left, running.topic) == [[LEADER, OTHER]], "the first left the ISR", 30)
    running.more()
    cluster.kill(OTHER)
    return FOLLOWER, OTHER


@pytest.mark.parametrize(
    ("kill", "last_comes_first"),
    [
        (kill_both_at_once, False),
        (kill_the_leader_then_the_next, False),
        (kill_a_follower_then_the_leader, True),
        (kill_the_followers_and_go_on, True),
    ],
    ids=["both at once", "the leader first", "the leader last", "only followers"],
)
def test_nothing_is_lost(
    cluster: Cluster, kill: Callable[[Cluster, Load], tuple[int, int]], last_comes_first: bool
) -> None:
    name = kill.__name__.replace("_", "-")
    topic = make_topic(cluster, name, [[LEADER, FOLLOWER, OTHER]], min_insync_replicas="1")
    with load(cluster, topic) as running:
        dead = kill(cluster, running)
        for node_id in reversed(dead) if last_comes_first else dead:
            cluster.restart(node_id)
            running.more(50)
        all_in_sync(cluster, topic)
        running.more()
        running.check()
    assert_equal_on_disk(cluster, topic, 1, ends(running.acknowledged))
