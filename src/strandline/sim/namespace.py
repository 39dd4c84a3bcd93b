"""The names of a simulated disk: directories, and a journal of the changes that are not yet durable.

Always true: a power loss keeps, for each group of directories that changes connect, a prefix of their changes; what a
`sync_dir` covered is part of every such prefix; a rename is kept or lost as a whole.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator

from strandline.sim.inode import Inode

JOURNAL_CHANGES_MAX = 1024
"""A file system commits on its own account after a while, even without a sync."""


class Directory:
    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, Inode | Directory] = {}
        self.durable: dict[str, Inode | Directory] = {}


Entry = Inode | Directory
Edit = tuple[Directory, str, Entry | None]


class NamespaceChange:
    """Names set or removed together."""

    __slots__ = ("edits", "number")

    def __init__(self, number: int, edits: tuple[Edit, ...]) -> None:
        self.number = number
        self.edits = edits

    def touches(self, directory: Directory) -> bool:
        return any(edit[0] is directory for edit in self.edits)


def error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)  # OSError picks the subclass for the code


def split(path: str) -> list[str]:
    return [part for part in path.split("/") if part and part != "."]


def clean(path: str) -> str:
    return "/" + "/".join(split(path))


class Namespace:
    def __init__(self) -> None:
        self.root = Directory()
        self.changes = 0
        self._journal: list[NamespaceChange] = []

    # Looking

    def find(self, path: str) -> Entry | None:
        entry: Entry = self.root
        for part in split(path):
            found = entry.names.get(part) if isinstance(entry, Directory) else None
            if found is None:
                return None
            entry = found
        return entry

    def directory(self, path: str) -> Directory:
        entry = self.find(path)
        if entry is None:
            raise error(errno.ENOENT, path)
        if not isinstance(entry, Directory):
            raise error(errno.ENOTDIR, path)
        return entry

    def file(self, path: str) -> Inode:
        entry = self.find(path)
        if entry is None:
            raise error(errno.ENOENT, path)
        if isinstance(entry, Directory):
            raise error(errno.EISDIR, path)
        return entry

    def place(self, path: str) -> tuple[Directory, str]:
        """The directory a path is in, and its name there."""
        parts = split(path)
        if not parts:
            raise error(errno.EINVAL, path)
        return self.directory("/".join(parts[:-1])), parts[-1]

    def files(self) -> Iterator[Inode]:
        waiting = [self.root]
        while waiting:
            for entry in waiting.pop().names.values():
                if isinstance(entry, Directory):
                    waiting.append(entry)
                else:
                    yield entry

    def walk(self) -> Iterator[tuple[str, Inode]]:
        """Every file with its path, in the order of their names."""
        waiting = [("", self.root)]
        while waiting:
            above, directory = waiting.pop()
            for name in sorted(directory.names):
                entry = directory.names[name]
                if isinstance(entry, Directory):
                    waiting.append((f"{above}/{name}", entry))
                else:
                    yield f"{above}/{name}", entry

    # Changing

    def change(self, *edits: Edit) -> None:
        self.changes += 1
        self._journal.append(NamespaceChange(self.changes, edits))
        for directory, name, entry in edits:
            if entry is None:
                directory.names.pop(name, None)
            else:
                directory.names[name] = entry
        if len(self._journal) > JOURNAL_CHANGES_MAX:
            self._commit(self._journal[: JOURNAL_CHANGES_MAX // 2])

    def make_directories(self, path: str) -> None:
        entry: Entry = self.root
        for part in split(path):
            if not isinstance(entry, Directory):
                raise error(errno.ENOTDIR, path)
            if part not in entry.names:
                self.change((entry, part, Directory()))
            entry = entry.names[part]
        if not isinstance(entry, Directory):
            raise error(errno.EEXIST, path)

    def rename(self, old: str, new: str) -> None:
        moved = self.find(old)
        if moved is None:
            raise error(errno.ENOENT, old)
        source, old_name = self.place(old)
        target, new_name = self.place(new)
        there = target.names.get(new_name)
        if there is moved:
            return
        if isinstance(moved, Directory) and (split(new)[: len(split(old))] == split(old)):
            raise error(errno.EINVAL, new)
        if isinstance(there, Directory):
            if not isinstance(moved, Directory):
                raise error(errno.EISDIR, new)
            if there.names:
                raise error(errno.ENOTEMPTY, new)
        elif there is not None and isinstance(moved, Directory):
            raise error(errno.ENOTDIR, new)
        self.change((source, old_name, None), (target, new_name, moved))

    def remove_tree(self, directory: Directory, name: str) -> None:
        entry = directory.names.get(name)
        if isinstance(entry, Directory):
            for below in sorted(entry.names):
                self.remove_tree(entry, below)
        if entry is not None:
            self.change((directory, name, None))

    # Surviving

    def sync(self, directory: Directory, upto: int) -> None:
        """Make durable what was changed in a directory up to a change number, and what those changes build on."""
        last = max((c.number for c in self._journal if c.number <= upto and c.touches(directory)), default=0)
        for group in self._groups():
            if any(change.number == last for change in group):
                self._commit([change for change in group if change.number <= last])
                return

    def power_loss(self, randomness: random.Random) -> None:
        for group in self._groups():
            self._commit(group[: randomness.randint(0, len(group))])
        self._journal.clear()
        waiting = [self.root]
        while waiting:
            directory = waiting.pop()
            directory.names = dict(directory.durable)
            waiting += [entry for entry in directory.names.values() if isinstance(entry, Directory)]

    def replace_files(self, survivors: dict[Inode, Inode]) -> None:
        """After a power loss: put what the device holds in the place of what memory held."""
        waiting = [self.root]
        while waiting:
            directory = waiting.pop()
            for name, entry in directory.names.items():
                if isinstance(entry, Directory):
                    waiting.append(entry)
                else:
                    directory.names[name] = directory.durable[name] = survivors[entry]

    def _commit(self, changes: list[NamespaceChange]) -> None:
        for change in changes:
            for directory, name, entry in change.edits:
                if entry is None:
                    directory.durable.pop(name, None)
                else:
                    directory.durable[name] = entry
        committed = {change.number for change in changes}
        self._journal = [change for change in self._journal if change.number not in committed]

    def _groups(self) -> list[list[NamespaceChange]]:
        """The journal, parted into changes that share directories, each part in order."""
        parent: dict[int, int] = {}

        def root(key: int) -> int:
            while parent.setdefault(key, key) != key:
                key = parent[key]
            return key

        for change in self._journal:
            first, *others = (id(edit[0]) for edit in change.edits)
            for other in others:
                parent[root(other)] = root(first)
        groups: dict[int, list[NamespaceChange]] = {}
        for change in self._journal:
            groups.setdefault(root(id(change.edits[0][0])), []).append(change)
        return list(groups.values())
