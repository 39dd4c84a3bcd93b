"""Which names survive a power loss."""

from __future__ import annotations

import random
from collections.abc import Callable

from strandline.sim.inode import Inode
from strandline.sim.namespace import Namespace


def outcomes(prepare: Callable[[Namespace], None], *paths: str) -> set[tuple[bool, ...]]:
    """Every combination of paths that exist after a power loss."""
    found = set()
    for seed in range(60):
        names = Namespace()
        prepare(names)
        names.power_loss(random.Random(seed))
        found.add(tuple(names.find(path) is not None for path in paths))
    return found


def create(names: Namespace, path: str) -> None:
    directory, name = names.place(path)
    names.change((directory, name, Inode(1, 0)))


def sync(names: Namespace, path: str) -> None:
    names.sync(names.directory(path), names.changes)


def test_a_new_name_is_kept_or_lost() -> None:
    assert outcomes(lambda names: create(names, "/a"), "/a") == {(True,), (False,)}


def test_a_synced_name_is_kept() -> None:
    def prepare(names: Namespace) -> None:
        create(names, "/a")
        sync(names, "/")
        create(names, "/b")

    assert outcomes(prepare, "/a", "/b") == {(True, True), (True, False)}


def test_a_rename_is_kept_or_lost_as_a_whole() -> None:
    def prepare(names: Namespace) -> None:
        names.make_directories("/x")
        names.make_directories("/y")
        create(names, "/x/a")
        sync(names, "/x")
        sync(names, "/")
        names.rename("/x/a", "/y/b")

    assert outcomes(prepare, "/x/a", "/y/b") == {(True, False), (False, True)}


def test_a_synced_name_in_a_directory_that_is_not_synced_goes_with_it() -> None:
    def prepare(names: Namespace) -> None:
        names.make_directories("/x")
        create(names, "/x/a")
        sync(names, "/x")

    assert outcomes(prepare, "/x", "/x/a") == {(True, True), (False, False)}


def test_changes_of_one_directory_are_kept_in_order() -> None:
    def prepare(names: Namespace) -> None:
        for name in "abc":
            create(names, f"/{name}")

    expected = {(False, False, False), (True, False, False), (True, True, False), (True, True, True)}
    assert outcomes(prepare, "/a", "/b", "/c") == expected


def test_changes_of_two_directories_are_kept_in_any_order() -> None:
    def prepare(names: Namespace) -> None:
        names.make_directories("/x")
        names.make_directories("/y")
        sync(names, "/")
        create(names, "/x/a")
        create(names, "/y/b")

    assert len(outcomes(prepare, "/x/a", "/y/b")) == 4


def test_a_removed_tree_may_come_back_in_part() -> None:
    def prepare(names: Namespace) -> None:
        names.make_directories("/x")
        create(names, "/x/a")
        create(names, "/x/b")
        sync(names, "/x")
        sync(names, "/")
        names.remove_tree(names.root, "x")

    found = outcomes(prepare, "/x", "/x/a", "/x/b")
    assert {(True, True, True), (True, False, True), (False, False, False)} <= found
