"""State lives with its transitions: each part of Raft's state is written by one module."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import strandline.raft
from strandline.raft.states import Follower, VoterChange

STATES = {"follower", "leader", "prospective", "candidate", "unattached", "resigned", "nominee", "change"}
"""A local variable with one of these names holds such a state, everywhere in raft/."""

OWNERS = {
    **{f"follower.{name}": "following" for name in Follower.__slots__},
    **{f"change.{name}": "reconfiguration" for name in VoterChange.__slots__},
    "leader.change": "reconfiguration",
    "leader.high_watermark": "serving",
    "leader.parked": "serving",
    "leader.check_quorum_at": "tracking",
    "leader.voters": "tracking",
    "unattached.campaign_at": "elections",
    "nominee.ends_at": "elections",
    "resigned.not_yet_refused": "core",
}
ALSO = {("change.answer", "core")}
"""Core answers the change of a leader that leads no more."""


def modules() -> dict[str, ast.Module]:
    folder = Path(strandline.raft.__path__[0])
    return {path.stem: ast.parse(path.read_text()) for path in folder.glob("*.py")}


def written(module: ast.Module) -> set[str]:
    """The attributes that this module assigns to: `follower.snapshot`."""
    return {
        ast.unparse(node)
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


def test_only_core_writes_what_the_parts_share() -> None:
    for name, module in modules().items():
        assert [target for target in written(module) if target.startswith(("core.", "self._core."))] == [], name


def test_a_part_of_a_state_has_one_writer() -> None:
    writers = defaultdict(set)
    for name, module in modules().items():
        for target in written(module):
            if target.partition(".")[0] in STATES and (target, name) not in ALSO:
                writers[target].add(name)
    assert {target: names for target, names in writers.items() if names != {OWNERS[target]}} == {}
