from __future__ import annotations

from strandline.histories.judges.replication.one_fetcher import OneFetcher

from .stage import broken, stage


def test_a_follower_is_fetched_from_its_leader() -> None:
    story = stage(OneFetcher)
    story.follow(2, 3, 1)
    with broken(OneFetcher):
        story.follow(2, 1, 2, fetched_from=3)


def test_a_follower_has_a_fetcher() -> None:
    story = stage(OneFetcher)
    story.members[2].fetched_from.clear()
    with broken(OneFetcher):
        story.append(2, "a")


def test_a_leader_has_none() -> None:
    story = stage(OneFetcher)
    story.members[1].fetched_from[story.partition(1)] = 2
    with broken(OneFetcher):
        story.append(1, "a")


def test_one_that_stops_has_none_either() -> None:
    story = stage(OneFetcher)
    story.members[2].fetched_from.clear()
    story.members[2].server.replication.fetchers.is_closed = True
    story.append(2, "a")
