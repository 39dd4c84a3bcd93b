"""Stories of replication as plain text: what is done above the line, what is to be seen below it.

brokers 3 [replicas=1,2,3] [min=1] [elr] [unclean] [flush=1] [lag=30]   a cluster with one partition
produce a b [to=1] [acks=all|1|0] [id=7] [sequence=0]    each value a batch; what its producer hears is told when it hears it
ask 2 | serve 2 | take 2   a Fetch of broker 2: it leaves, it is with the leader, the answer is taken
fetch 2                    all three; the answer is told
late 2                     a Fetch that broker 2 sent before it died is with the leader only now
alter 1 | altered 1        the ISR that broker 1 proposes is with the controller; its answer is with broker 1
metadata 2 [images=1]      the broker reads what the controller decided, all of it or so many decisions
settle                     everybody does all that, until nothing changes any more
shrink 1                   the leader looks who was behind for too long
wait 31                    seconds pass
kill 1 | crash 1 | stop 1 | start 1      the process dies; the power fails; a controlled shutdown; it comes back, fenced
fence 1 | beat 1           its session is over; it sends a heartbeat
checkpoint 1 | flush 1     as a broker does now and then
cut 1 | cut 1-2 | heal     nothing arrives from or at a broker, or between two
elect preferred | elect unclean | balance | reassign 1,2,4 | cancel     asked of the controller
set unclean                the topic's policy changes
consume 1 | latest 1       what a consumer reads there; what it is told the end is
controller                 the partition as the controller has it
status [1]                 a line for each broker
log [1]                    value and leader epoch at each offset
epochs [1]                 where each leader epoch begins
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from strandline.api import list_offsets
from strandline.controller.leader_election import Election
from strandline.errors import KafkaError, error_code
from strandline.wire.fetch import FetchedPartition

from .broker import Link, Process, records_of
from .cluster import NO_FLUSH, Cluster
from .invariants import Watch

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))
ACKS = {"all": -1, "1": 1, "0": 0}


def ids(text: str) -> tuple[int, ...]:
    return tuple(int(digit) for digit in text.split(","))


class Story:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.cluster: Cluster
        self.watch: Watch

    def tell(self, text: str) -> list[str]:
        for line in text.splitlines():
            words = line.partition("#")[0].split()
            if words:
                options = dict(word.split("=") for word in words[1:] if "=" in word)
                getattr(self, f"do_{words[0]}")(*[word for word in words[1:] if "=" not in word], **options)
                self.lines += self.cluster.told
                self.cluster.told.clear()
                self.watch.check()
        return self.lines

    def do_brokers(
        self,
        count: str,
        *words: str,
        replicas: str = "1,2,3",
        min: str = "1",
        flush: str = str(NO_FLUSH),
        lag: str = "30",
    ) -> None:
        self.cluster = Cluster(
            ids(count) if "," in count else int(count),
            replicas=ids(replicas),
            min_isr=int(min),
            elr="elr" in words,
            unclean="unclean" in words,
            flush_messages=int(flush),
            lag_s=float(lag),
        )
        self.watch = Watch(self.cluster, allows_loss="lossy" in words or "unclean" in words)
        self.cluster.settle()

    # Clients

    def do_produce(
        self,
        *values: str,
        to: str = "",
        acks: str = "all",
        id: str = "-1",
        sequence: str = "-1",
    ) -> None:
        broker_id = int(to) if to else self.cluster.controller.partition.leader
        for i, value in enumerate(values):
            producer = None if id == "-1" else (int(id), 0, int(sequence) + i)
            self.cluster.produce(broker_id, value, acks=ACKS[acks], producer=producer)

    def do_consume(self, broker_id: str) -> None:
        seen = " ".join(value for _, value, _ in self.cluster.consume(int(broker_id)))
        self.lines.append(f"consumer at {broker_id}: {seen or 'nothing'}")

    def do_latest(self, broker_id: str) -> None:
        try:
            found = list_offsets._find(self.cluster.partition(int(broker_id)), list_offsets.LATEST, -1, 0)
            self.lines.append(f"latest at {broker_id}: {'none' if found is None else found.offset}")
        except KafkaError as error:
            self.lines.append(f"latest at {broker_id}: {error.code.name}")

    # Followers

    def _link(self, broker_id: str) -> Link:
        process = self.cluster.process(int(broker_id))
        return process.links[self.cluster.partition(int(broker_id)).state.leader]

    def do_ask(self, broker_id: str) -> None:
        self.cluster.process(int(broker_id)).flush()
        self.cluster.process(int(broker_id)).fetch()

    def do_serve(self, broker_id: str) -> None:
        self._arrive("fetch", int(broker_id))

    def do_take(self, broker_id: str) -> None:
        self._arrive("answer", None, int(broker_id))

    def do_late(self, broker_id: str) -> None:
        self._arrive("fetch", int(broker_id), late=True)

    def _arrive(self, kind: str, source: int | None = None, target: int | None = None, *, late: bool = False) -> None:
        for message in self.cluster.deliverable():
            is_late = message.link is not None and not message.link.follower.runs
            fits = message.kind == kind and source in (None, message.source) and target in (None, message.target)
            if fits and is_late is late:
                self.cluster.deliver(message)
                return

    def do_fetch(self, broker_id: str) -> None:
        process = self.cluster.process(int(broker_id))
        heard: list[str] = []
        self._overhear(process, heard)
        self.do_ask(broker_id)
        asked = f"{broker_id} asks"
        followed = next(iter(self._link(broker_id).session.members.values()))
        if followed.asked is not None:
            asked += f" for {followed.asked.fetch_offset} after epoch {followed.asked.last_fetched_epoch}"
        self.do_serve(broker_id)
        self.do_take(broker_id)
        self.lines.append(f"{asked}: {heard[-1] if heard else 'it waits'}")

    @staticmethod
    def _overhear(process: Process, heard: list[str]) -> None:
        partition = process.partition
        assert partition is not None
        take = type(partition).take

        def listen(asked: object, answer: FetchedPartition, now_ms: int) -> object:
            heard.append(_shown(answer))
            return take(partition, asked, answer, now_ms)  # type: ignore[arg-type]

        partition.take = listen  # type: ignore[assignment, method-assign]

    # The controller

    def do_alter(self, broker_id: str) -> None:
        self._arrive("alter", int(broker_id))

    def do_altered(self, broker_id: str) -> None:
        self._arrive("altered", None, int(broker_id))

    def do_metadata(self, broker_id: str, images: str = "") -> None:
        process = self.cluster.process(int(broker_id))
        process.apply(process.applied + int(images) if images else None)

    def do_fence(self, broker_id: str) -> None:
        self.cluster.controller.fence(int(broker_id))

    def do_beat(self, broker_id: str) -> None:
        self.cluster.beat(int(broker_id))

    def do_elect(self, kind: str) -> None:
        try:
            self.cluster.controller.elect(Election[kind.upper()])
        except KafkaError as error:
            self.lines.append(error.code.name)

    def do_balance(self) -> None:
        self.cluster.controller.balance()

    def do_reassign(self, replicas: str) -> None:
        self.cluster.controller.reassign(ids(replicas))

    def do_cancel(self) -> None:
        self.cluster.controller.reassign(None)

    def do_set(self, what: str) -> None:
        assert what == "unclean"
        controller = self.cluster.controller
        controller.policy = replace(controller.policy, default_unclean=True)
        controller.elect_uncleanly_if_allowed()
        self.watch.allows_loss = True

    # Brokers

    def do_kill(self, broker_id: str) -> None:
        self.cluster.kill(int(broker_id))

    def do_crash(self, broker_id: str) -> None:
        self.cluster.power_loss(int(broker_id))

    def do_stop(self, broker_id: str) -> None:
        for _ in range(10):
            if self.cluster.stop(int(broker_id)):
                return
            self.cluster.settle()
            for process in self.cluster.running:
                if process.node_id != int(broker_id):
                    self.cluster.beat(process.node_id)
        raise AssertionError(f"{broker_id} does not stop")

    def do_start(self, broker_id: str) -> None:
        self.cluster.start(int(broker_id)).apply()

    def do_checkpoint(self, broker_id: str) -> None:
        self.cluster.process(int(broker_id)).write_checkpoint()

    def do_flush(self, broker_id: str) -> None:
        self.cluster.process(int(broker_id)).flush()

    def do_shrink(self, broker_id: str) -> None:
        self.cluster.partition(int(broker_id)).shrink_isr(self.cluster.loop.now)

    def do_cut(self, what: str) -> None:
        if "-" in what:
            a, b = (int(n) for n in what.split("-"))
            self.cluster.cut |= {(a, b), (b, a)}
        else:
            self.cluster.isolate(int(what))

    def do_heal(self) -> None:
        self.cluster.heal()

    def do_wait(self, seconds: str) -> None:
        self.cluster.wait(float(seconds))

    def do_settle(self) -> None:
        self.cluster.settle()

    # Looking

    def do_controller(self) -> None:
        state = self.cluster.controller.partition
        facts = [
            f"leader={state.leader if state.has_leader else 'none'}",
            f"epoch={state.leader_epoch}",
            f"replicas={_list(state.replicas)}",
            f"isr={_list(state.isr)}",
        ]
        for name, value in (
            ("elr", state.elr),
            ("last", state.last_known_elr),
            ("adding", state.adding_replicas),
            ("removing", state.removing_replicas),
        ):
            if value:
                facts.append(f"{name}={_list(value)}")
        if state.leader_recovery_state:
            facts.append("recovering")
        self.lines.append(f"controller: {' '.join(facts)}")

    def _named(self, broker_id: str) -> list[int]:
        return [int(broker_id)] if broker_id else [*self.cluster.hosts]

    def do_status(self, broker_id: str = "") -> None:
        for each in self._named(broker_id):
            self.lines.append(f"{each}: {self._status(each)}")

    def _status(self, broker_id: int) -> str:
        process = self.cluster.hosts[broker_id].process
        if process is None:
            return "stopped"
        partition = process.partition
        if partition is None:
            return "hosts nothing"
        end, watermark = partition.log.log_end_offset, partition.high_watermark
        facts = f"epoch={partition.leader_epoch} end={end} hw={watermark}"
        if partition.leadership is not None:
            isr = partition.leadership.isr
            facts = f"leader   {facts} isr={_list(isr.isr)}"
            if set(isr.maximal) != set(isr.isr):
                facts += f" maximal={_list(isr.maximal)}"
        else:
            facts = f"follower {facts}"
        return " ".join([facts, *(f"truncated={cut}" for cut in process.truncations)])

    def do_log(self, broker_id: str = "") -> None:
        for each in self._named(broker_id):
            process = self.cluster.hosts[each].process
            if process is not None and process.partition is not None:
                log = process.partition.log
                records = records_of(log, log.log_start_offset)
                self.lines.append(f"{each}: {' '.join(f'{o}:{v}/{e}' for o, v, e in records) or 'empty'}")

    def do_epochs(self, broker_id: str = "") -> None:
        for each in self._named(broker_id):
            entries = self.cluster.partition(each).log.epochs.entries
            self.lines.append(f"{each}: {' '.join(f'{epoch}@{start}' for epoch, start in entries) or 'none'}")


def _list(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values)) or "none"


def _shown(answer: FetchedPartition) -> str:
    if answer.error_code:
        return error_code(answer.error_code).name
    if answer.diverging_epoch is not None:
        return f"diverging, epoch {answer.diverging_epoch[0]} ends at {answer.diverging_epoch[1]}"
    return f"{'records' if answer.records else 'nothing new'}, hw {answer.high_watermark}"


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
def test_story(path: Path) -> None:
    done, _, seen = path.read_text().partition("----\n")
    assert Story().tell(done) == seen.splitlines()


def test_every_word_of_the_language_is_explained() -> None:
    words = {name.removeprefix("do_") for name in vars(Story) if name.startswith("do_")}
    assert __doc__ is not None
    assert words <= {word for line in __doc__.splitlines() for word in line.split()}
