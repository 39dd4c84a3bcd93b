"""Which voters and which kraft.version are in force, along the log.

Always true: the entry nearest to the end of the log is in force, committed or not (D13); what is truncated is forgotten, and
the entry before it is in force again. The base, from the configuration or a snapshot, is never truncated.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from strandline.raft.voters import VoterSet

NOT_IN_LOG: Final = -1
"""The offset of voters that no record of the log and no snapshot of it has named: configured, or formatted with the disk."""


class VoterHistory:
    __slots__ = ("_kraft_versions", "_voters")

    def __init__(
        self,
        voters: VoterSet,
        kraft_version: int,
        *,
        base_offset: int = NOT_IN_LOG,
        entries: Iterable[tuple[int, VoterSet]] = (),
    ) -> None:
        self._voters: list[tuple[int, VoterSet]] = [(base_offset, voters), *entries]
        self._kraft_versions: list[tuple[int, int]] = [(base_offset, kraft_version)]

    @property
    def voters(self) -> VoterSet:
        return self._voters[-1][1]

    @property
    def voters_offset(self) -> int:
        """Of the record that named the voters in force."""
        return self._voters[-1][0]

    @property
    def voters_before(self) -> VoterSet | None:
        """Those that the voters in force took over from; they decide again if the record is truncated."""
        return self._voters[-2][1] if len(self._voters) > 1 else None

    @property
    def kraft_version(self) -> int:
        return self._kraft_versions[-1][1]

    def add_voters(self, offset: int, voters: VoterSet) -> None:
        assert offset > self.voters_offset, "records come in the order of their offsets"
        self._voters.append((offset, voters))

    def add_kraft_version(self, offset: int, kraft_version: int) -> None:
        assert offset > self._kraft_versions[-1][0], "records come in the order of their offsets"
        self._kraft_versions.append((offset, kraft_version))

    def truncate(self, end_offset: int) -> None:
        """Forget what records at or behind this offset said."""
        while len(self._voters) > 1 and self._voters[-1][0] >= end_offset:
            self._voters.pop()
        while len(self._kraft_versions) > 1 and self._kraft_versions[-1][0] >= end_offset:
            self._kraft_versions.pop()

    def begin_at(self, end_offset: int, voters: VoterSet | None, kraft_version: int) -> None:
        """The log begins anew with a snapshot that ends here; one that names no voters leaves the configured ones."""
        kept = self._voters[0][1] if voters is None else voters
        offset = NOT_IN_LOG if voters is None else end_offset - 1
        self._voters = [(offset, kept)]
        self._kraft_versions = [(end_offset - 1, kraft_version)]

    def check_invariants(self) -> None:
        for entries in (self._voters, self._kraft_versions):
            offsets = [offset for offset, _ in entries]
            assert all(before < after for before, after in pairwise(offsets)), f"records at {offsets}"
        # What the configuration says may be anything; what the log says follows from what it said before.
        for (_, before), (offset, after) in pairwise(self._voters[1:]):
            changed = set(before.ids) ^ set(after.ids)
            assert len(changed) <= 1, f"the voters {before.ids} become {after.ids} at {offset}, not one at a time"
        assert all(len(voters) for _, voters in self._voters[1:]), "there are no voters left"
