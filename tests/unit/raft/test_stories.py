"""Protocol stories as plain text: what is done above the line, what is to be seen below it.

nodes 3 [first=1] [observers=4,5] [brokers=9] [kraft=0]    a cluster; `first` is a little faster than the others
run 0.5                    seconds pass
until leader               until somebody leads and everybody has its whole log; takes=… says at most how long that may be
write 2                    the leader appends so many records
write 1@3                  node 3 does, if it believes to lead
crash 1 | kill 1           with the power gone, what was not flushed is lost; killed, it is not
start 1                    the node comes back
resign 1                   the node is stopped with care
isolate 1 | heal           nothing goes between it and the others, silently
deaf 1<2                   nothing from node 2 arrives at node 1
reset 1-2                  connections between the two close, and what was asked through them comes to nothing
snapshot 1                 the node takes a snapshot of what is committed, and forgets the log before it
add 4 | remove 2           voters, asked of the leader
status                     a line for each node
states 1                   through which states the node went, with the epoch of each
"""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.raft import events as on
from tests.unit.raft.cluster import Cluster, Node

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


class Story:
    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self.lines: list[str] = []
        self.cluster: Cluster

    def tell(self, text: str) -> list[str]:
        for line in text.splitlines():
            words = line.partition("#")[0].split()
            if words:
                options = dict(word.split("=") for word in words[1:] if "=" in word)
                getattr(self, f"do_{words[0]}")(*[word for word in words[1:] if "=" not in word], **options)
        return self.lines

    def do_nodes(self, count: str, first: str = "1", observers: str = "", brokers: str = "", kraft: str = "1") -> None:
        ids = list(range(1, int(count) + 1))
        others = [int(n) for n in observers.split(",") if n]
        self.cluster = Cluster(
            ids,
            observers=others,
            brokers=[int(n) for n in brokers.split(",") if n],
            kraft_version=int(kraft),
            seed=self.seed,
            start=False,
        )
        node = self.cluster.nodes[int(first)]
        self.cluster.start(node.id)
        # Its questions are on their way when the others start: they find everybody in time.
        self.cluster.run_until(lambda: node.raft is not None and node.raft.role != "Unattached")
        for node_id in self.cluster.nodes:
            if node_id != int(first):
                self.cluster.start(node_id)

    def do_run(self, seconds: str) -> None:
        self.cluster.run(float(seconds))

    def do_until(self, what: str, takes: str = "10") -> None:
        def agreed() -> bool:
            leader = self.cluster.leader()
            assert leader is None or leader.raft is not None
            return leader is not None and all(
                node.raft is not None
                and node.raft.epoch == leader.raft.epoch  # type: ignore[union-attr]
                and node.raft.high_watermark == leader.log.end_offset == node.log.end_offset
                for node in self.cluster.running()
            )

        assert what == "leader"
        assert self.cluster.run_until(agreed, at_most=float(takes)), "\n".join(
            map(self._line, self.cluster.nodes.values())
        )

    def do_write(self, what: str) -> None:
        count, _, node_id = what.partition("@")
        self.cluster.write(int(node_id) if node_id else self._leader().id, int(count))

    def do_crash(self, node_id: str) -> None:
        self.cluster.crash(int(node_id))

    def do_kill(self, node_id: str) -> None:
        self.cluster.crash(int(node_id), power_loss=False)

    def do_start(self, node_id: str) -> None:
        self.cluster.start(int(node_id))

    def do_resign(self, node_id: str) -> None:
        self.cluster.step(self.cluster.nodes[int(node_id)], on.Resign())

    def do_isolate(self, node_id: str) -> None:
        self.cluster.cut_off(int(node_id))

    def do_heal(self) -> None:
        self.cluster.heal()

    def do_deaf(self, link: str) -> None:
        target, _, source = link.partition("<")
        self.cluster.cut.add((int(source), int(target)))

    def do_reset(self, link: str) -> None:
        a, b = (int(n) for n in link.split("-"))
        self.cluster.reset(a, b)

    def do_snapshot(self, node_id: str) -> None:
        self.cluster.snapshot(int(node_id))

    def do_add(self, node_id: str) -> None:
        self.cluster.add_voter(self._leader().id, int(node_id))
        self._responses()

    def do_remove(self, node_id: str) -> None:
        self.cluster.remove_voter(self._leader().id, int(node_id))
        self._responses()

    def do_status(self) -> None:
        self.lines += map(self._line, self.cluster.nodes.values())

    def do_states(self, node_id: str) -> None:
        self.lines.append(f"{node_id}: {' '.join(self.cluster.nodes[int(node_id)].states)}")

    def _responses(self) -> None:
        self.cluster.run_until(lambda: bool(self.cluster.responses), at_most=5.0)
        self.lines += [response.error.name for response in self.cluster.responses]
        self.cluster.responses.clear()

    def _leader(self) -> Node:
        leader = self.cluster.leader()
        assert leader is not None
        return leader

    def _line(self, node: Node) -> str:
        raft, log = node.raft, node.log
        if raft is None:
            return f"{node.id}: stopped"
        known = "?" if raft.high_watermark is None else raft.high_watermark
        voters = ",".join(map(str, sorted(raft.voters.ids)))
        facts = f"epoch={raft.epoch} log={log.start_offset}-{log.end_offset} hw={known} voters={voters}"
        return " ".join([f"{node.id}: {raft.role.lower():<10} {facts}", *node.told])


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
def test_story(path: Path) -> None:
    done, _, seen = path.read_text().partition("----\n")
    assert Story().tell(done) == seen.splitlines()
