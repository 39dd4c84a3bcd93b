"""A simulated cluster of whole nodes: combined ones, or controllers and brokers apart; and what the world does to them.

Node 1 lives on host n1, and so on. What each process does is looked at after every turn of its event loop
(`QuorumObservation`).

Always true: a node that can't go on ends its process, as it would in production, and that is a problem of the history
unless its disk was made to fail.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from strandline.config import properties
from strandline.config.node import NodeConfig
from strandline.histories.coverage import Coverage
from strandline.histories.exchanges import CoordinatorExchange
from strandline.histories.judges.invariants import NodeInvariants
from strandline.histories.member import LOG_DIR, ClusterMember
from strandline.histories.quorum_observation import QuorumJudge, QuorumNodeState, QuorumObservation, Violation
from strandline.histories.shape import Shape, host
from strandline.histories.transcript import WORLD, Transcript
from strandline.histories.wire import QuorumMessage, Wiretap
from strandline.ids import Uuid
from strandline.metadata.features import TRANSACTION_VERSION, bootstrap_features
from strandline.metadata.initial_voters import InitialVoter, voters_record
from strandline.node.log_dirs import format_dirs
from strandline.node.node import Node
from strandline.runtime.logging import LEVELS, JsonLogger
from strandline.sim.context import SimProcess
from strandline.sim.faults import Fault
from strandline.sim.inode import PAGE_BYTES
from strandline.sim.world import World

if TYPE_CHECKING:
    from strandline.wire.stubs.data import VotersRecord

CLUSTER_ID = "c2ltdWxhdGVkY2x1c3Rlcg"
BROKER_PORT, CONTROLLER_PORT, INTER_BROKER_PORT = 9092, 9093, 9094
STOP_WITHIN_S = 15.0
POLL_S, POLL_S_MAX = 0.1, 0.4
"""How often to look whether something came true: less often, the longer it takes."""

CONFIG = {
    "controller.listener.names": "CONTROLLER",
    "log.dirs": LOG_DIR,
    # Short timeouts, in proportion to each other as the defaults are: a history is over sooner.
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1200",
    "controller.quorum.request.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "1500",
    "log.index.interval.bytes": "512",
}


class LivenessFailure(AssertionError):
    """What must happen in the end did not."""


def _initial_voters(shape: Shape, chance: random.Random) -> VotersRecord:
    voters = [InitialVoter(i, host(i), CONTROLLER_PORT, Uuid.draw(chance)) for i in shape.voters]
    record: VotersRecord = voters_record(voters, "CONTROLLER")
    return record


class SimulatedCluster:
    def __init__(
        self,
        world: World,
        shape: Shape,
        judges: Sequence[QuorumJudge],
        transcript: Transcript,
        *,
        coverage: Coverage | None = None,
    ) -> None:
        self.world = world
        self.shape = shape
        self.transcript = transcript
        self.observed = QuorumObservation(judges, transcript, now=lambda: world.now, coverage=coverage)
        self.members: dict[int, ClusterMember] = {}
        self.problems: list[str] = []
        self.log_lines: list[str] = []
        self.also_look: Callable[[ClusterMember], None] = lambda member: None
        """Beside the judges of the quorum, after every turn of a node."""
        self.on_group_exchange: Callable[[CoordinatorExchange], None] = lambda exchange: None
        """What is asked about groups, and what is answered."""
        self.on_transaction_exchange: Callable[[CoordinatorExchange], None] = lambda exchange: None
        """The same about transactions, and each Produce that is part of one."""
        self.on_death: Callable[[ClusterMember, str], None] = lambda member, how: None
        """A process is about to be killed, or its host to go dark."""
        self._by_process: dict[SimProcess, ClusterMember] = {}
        self._invariants = NodeInvariants()
        self._violation: Violation | None = None
        """Met while bytes were leaving; it ends the history after the turn."""
        self._first_voters = _initial_voters(shape, world.faults) if shape.is_dynamic else None
        for node_id in shape.ids:
            self.add(node_id)
        ids = {host(node_id): node_id for node_id in shape.ids}
        self._hosts = ids
        wiretap = Wiretap(
            ids,
            CONTROLLER_PORT,
            self._sent,
            lambda exchange: self._of_coordinator(exchange, self.on_group_exchange),
            self._answered if shape.two_listeners else None,
            lambda exchange: self._of_coordinator(exchange, self.on_transaction_exchange),
        )
        world.network.tap, self.observed.fetches = wiretap, wiretap.fetches
        self.observed.is_cut = self._is_cut
        world.loop.after_turn = self._after_turn

    # Making nodes

    def add(self, node_id: int) -> ClusterMember:
        """A machine with a formatted disk; nothing runs there yet."""
        machine = self.world.node(host(node_id))
        machine.disk.cold_probability = 0.01
        member = ClusterMember(node_id, machine, self._config(node_id))
        self.members[node_id] = member
        self.observed.members[node_id] = member
        self.format(member)
        return member

    def format(self, member: ClusterMember) -> None:
        voters = self._first_voters if member.id in self.shape.voters and not member.was_wiped else None
        randomness = member.machine.randomness
        format_dirs(
            member.machine.disk,
            list(member.config.log_dirs),
            CLUSTER_ID,
            member.id,
            randomness,
            features=bootstrap_features(wanted={TRANSACTION_VERSION: self.shape.transaction_version}),
            voters=voters,
        )

    def _config(self, node_id: int) -> NodeConfig:
        shape = self.shape
        is_broker, is_controller = node_id in shape.brokers, node_id in shape.controllers
        listeners = []
        if is_broker:
            listeners.append(f"PLAINTEXT://{host(node_id)}:{BROKER_PORT}")
        if is_broker and shape.two_listeners:
            # The first one: a broker that answers clients with its first listener gives them the wrong one.
            listeners.insert(0, f"BROKERS://{host(node_id)}:{INTER_BROKER_PORT}")
        if is_controller:
            listeners.append(f"CONTROLLER://{host(node_id)}:{CONTROLLER_PORT}")
        values = {
            "node.id": str(node_id),
            "process.roles": ",".join(["broker"] * is_broker + ["controller"] * is_controller),
            "listeners": ",".join(listeners),
        }
        if is_broker and shape.two_listeners:
            values["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT"
            values["inter.broker.listener.name"] = "BROKERS"
        if node_id in shape.racks:
            values["broker.rack"] = shape.racks[node_id]
        addresses = {voter_id: f"{host(voter_id)}:{CONTROLLER_PORT}" for voter_id in shape.controllers}
        if shape.is_dynamic:
            values["controller.quorum.bootstrap.servers"] = ",".join(addresses.values())
        else:
            values["controller.quorum.voters"] = ",".join(f"{i}@{address}" for i, address in addresses.items())
        return NodeConfig.build(properties.of(CONFIG | values | dict(shape.config or {})), insecure=True)

    # Starting and stopping

    def start(self, *node_ids: int) -> None:
        """Let processes begin; a broker is through with it once the quorum lets it in."""
        for node_id in node_ids or self.members:
            member = self.members[node_id]
            if member.is_up:
                continue
            if not member.machine.alive:
                member.machine.restart()
            member.is_up = True
            member.life += 1
            self._by_process[member.machine.process] = member
            self.transcript.note(member.name, "starts")
            self.observed.disturbed_at = self.world.now
            member.starting = member.machine.spawn(self._run(member))

    async def _run(self, member: ClusterMember) -> None:
        logger = JsonLogger(partial(self._logged, member), LEVELS["warning"])
        machine = member.machine
        node = Node(member.config, machine.disk, machine.clock, machine.randomness, logger)
        member.node, member.observed = node, node.observe()
        machine.spawn(self._watch(member, node))
        try:
            await node.start()
        except Exception as error:
            self._failed(member, f"did not start: {error!r}")
            return
        self.transcript.note(member.name, "is started")

    def _logged(self, member: ClusterMember, line: str) -> None:
        """What a node had not expected is a problem, though it lives on: a request that it could not answer, for
        one."""
        self.log_lines.append(line)
        if '"exception": ' in line and not member.may_fail:
            self.problems.append(f"{member.name} logged {line}")

    async def _watch(self, member: ClusterMember, node: Node) -> None:
        try:
            await node.failed()
        except asyncio.CancelledError:
            return
        except Exception as error:
            self._failed(member, f"gave up: {error}")

    def _failed(self, member: ClusterMember, why: str) -> None:
        self.transcript.note(member.name, why)
        member.failed = why
        if not member.may_fail:
            self.problems.append(f"{member.name} {why}")
        self._down(member)
        member.machine.kill()

    def _down(self, member: ClusterMember) -> None:
        self._by_process.pop(member.machine.process, None)
        member.is_up = False
        member.node = member.observed = None

    async def stop(self, node_id: int) -> None:
        """As SIGTERM. A node that has not started yet is killed."""
        member = self.members[node_id]
        node = member.node
        if not member.is_started or node is None:
            self.kill(node_id)
            return
        self._fault("stop", member)
        stopping = member.machine.spawn(node.stop())
        await self.until(lambda: stopping.done() or not member.is_up, f"{member.name} stops", STOP_WITHIN_S)
        if member.is_up:
            stopping.result()
            self._down(member)
            member.machine.kill()

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            member = self.members[node_id]
            if member.is_up:
                self._fault("kill", member)
                self.on_death(member, "kill")
                self._down(member)
                member.machine.kill()

    def power_loss(self, *node_ids: int) -> None:
        for node_id in node_ids:
            member = self.members[node_id]
            self._fault("power loss", member)
            self.on_death(member, "power loss")
            self._down(member)
            member.machine.power_loss()

    def wipe(self, node_id: int) -> None:
        """The node dies and its disk with it; an empty, formatted one is in its place."""
        member = self.members[node_id]
        self._fault("disk lost", member)
        self._down(member)
        member.machine.kill()
        member.machine.disk.replace_with_new()
        self.observed.forget(node_id)
        member.lost_its_disk()
        self.format(member)

    def pause(self, node_id: int) -> None:
        member = self.members[node_id]
        self._fault("pause", member)
        member.pauses += 1
        member.machine.pause()

    def resume(self, node_id: int) -> None:
        self.transcript.note(host(node_id), "goes on")
        self.observed.disturbed_at = self.world.now
        self.members[node_id].machine.resume()

    def slow(self, node_id: int, factor: float) -> None:
        self._fault(f"slow {factor:.0f}x", self.members[node_id])
        self.members[node_id].machine.slow(factor)

    def slow_disk(self, node_id: int, factor: float) -> None:
        self._fault(f"slow disk {factor:.0f}x", self.members[node_id])
        self.members[node_id].machine.disk.faults.slow("/", factor)

    def break_disk(self, node_id: int, prefix: str, fault: Fault, *, room_bytes: int = 0) -> None:
        """Operations below `prefix` fail from now on, or once so many bytes more were written; the node may give up."""
        member = self.members[node_id]
        self._fault(f"disk: {fault.value}", member)
        member.may_fail = True
        member.machine.disk.faults.set(prefix, fault, after_bytes=room_bytes)

    def repair_disk(self, node_id: int) -> None:
        member = self.members[node_id]
        member.machine.disk.faults.clear()
        member.may_fail = False

    def reboot_repaired(self, node_id: int) -> None:
        """As an operator does with a disk that failed: it is repaired and the whole host booted anew, since after a
        failed sync it is unknown what of the page cache is on the device."""
        member = self.members[node_id]
        if member.may_fail:
            self.repair_disk(node_id)
            self.transcript.note(member.name, "is repaired and booted anew")
            self._down(member)
            member.machine.power_loss()
        self.start(node_id)

    def flip_bit(self, node_id: int, path: str, position: int, bit: int) -> None:
        """On the device: the next read of that page has to fetch it from there."""
        self.transcript.note(host(node_id), f"a bit of {path} flips at {position}")
        disk = self.members[node_id].machine.disk
        disk.flip_bit(path, position, bit)
        disk._names.file(path).cold.add(position // PAGE_BYTES)

    # The network between nodes. Clients are always reachable, except from an isolated node.

    def isolate(self, node_id: int) -> None:
        self._fault("cut off", self.members[node_id])
        self.world.network.isolate(host(node_id))

    def cut(self, one: int, other: int) -> None:
        self._note_fault("cut", f"between n{one} and n{other}")
        self.world.network.cut(host(one), host(other))

    def cut_one_way(self, source: int, target: int) -> None:
        self._note_fault("one-way cut", f"from n{source} to n{target}")
        self.world.network.cut_one_way(host(source), host(target))

    def split(self, one: Sequence[int], other: Sequence[int]) -> None:
        self._note_fault("split", f"{list(one)} | {list(other)}")
        for here in one:
            for there in other:
                self.world.network.cut(host(here), host(there))

    def reset(self, one: str, other: str) -> None:
        if self.world.network.reset_connections(one, other):
            self._note_fault("reset", f"{one} - {other}")

    def _is_cut(self, one: int, other: int) -> bool:
        network = self.world.network
        return network.is_cut(host(one), host(other)) or network.is_cut(host(other), host(one))

    def heal_link(self, one: int, other: int) -> None:
        self.transcript.note(WORLD, f"n{one} and n{other} reach each other")
        self.observed.disturbed_at = self.world.now
        self.world.network.heal(host(one), host(other))

    def heal_network(self) -> None:
        self.transcript.note(WORLD, "the network is whole")
        self.observed.disturbed_at = self.world.now
        self.world.network.heal_all()

    def heal(self) -> None:
        """Undo all faults and start whatever is down."""
        self.heal_network()
        for member in self.members.values():
            member.machine.disk.faults.clear()
            member.machine.slow(1.0)
            member.machine.resume()
        self.start()

    def _fault(self, kind: str, member: ClusterMember) -> None:
        self.transcript.note(member.name, kind)

    def _note_fault(self, kind: str, what: str) -> None:
        self.transcript.note(WORLD, f"{kind} {what}")

    # Looking

    def _after_turn(self, process: SimProcess) -> None:
        if self._violation is not None:
            raise self._violation
        member = self._by_process.get(process)
        if member is not None:
            self._look(member)
            self._invariants.after_turn(self.observed, member)

    def _look(self, member: ClusterMember) -> None:
        saved = member.new_election_state()
        if saved is not None:
            self.observed.see_election_state(member.id, saved)
        seen = member.look()
        if seen is not None:
            if seen is not self.observed.nodes.get(member.id):
                self.observed.see(member.id, seen)
            self.also_look(member)

    def _sent(self, sent: QuorumMessage) -> None:
        member = self.members[sent.source]
        try:
            if member.is_up:
                self._look(member)
            self.observed.see_sent(sent)
        except Violation as violation:  # the transport would take it for an error of its own
            self._violation = self._violation or violation

    def _answered(self, broker_id: int, port: int, frame: bytes) -> None:
        try:
            self.observed.see_answer(broker_id, port, frame)
        except Violation as violation:
            self._violation = self._violation or violation

    def _of_coordinator(self, exchange: CoordinatorExchange, hear: Callable[[CoordinatorExchange], None]) -> None:
        member = self.members[exchange.broker_id]
        try:
            if exchange.answered_at is not None and member.is_up:
                self._look(member)
            hear(exchange)
        except Violation as violation:
            self._violation = self._violation or violation

    def seen(self, node_id: int) -> QuorumNodeState | None:
        return self.members[node_id].look()

    @property
    def up(self) -> list[int]:
        return [member.id for member in self.members.values() if member.is_up]

    def leader(self) -> int | None:
        """Who leads in the newest epoch among the nodes that are up."""
        leaders = [
            (seen.epoch, member.id)
            for member in self.members.values()
            if member.is_up and (seen := member.look()) is not None and seen.leads
        ]
        return max(leaders)[1] if leaders else None

    def high_watermark(self, *node_ids: int) -> int:
        """The greatest that any of these knows of; of all that are up if none is named."""
        looks = [self.seen(node_id) for node_id in node_ids or self.members]
        return max((seen.high_watermark or 0 for seen in looks if seen is not None), default=0)

    async def until(self, condition: Callable[[], object], what: str, within_s: float = 30.0) -> None:
        """Stuck if it does not come true in this virtual time."""
        if not await self.comes_true(condition, within_s):
            why = "a node is not well" if self.problems else f"not within {within_s} s"
            raise LivenessFailure(f"{what}: {why}; {self.describe()}")

    async def comes_true(self, condition: Callable[[], object], within_s: float) -> bool:
        """Whether it does in this virtual time; no more once a node is not well."""
        deadline, poll_s = self.world.now + within_s, POLL_S
        while not condition():
            if self.world.now >= deadline or self.problems:
                return False
            await asyncio.sleep(poll_s)
            poll_s = min(1.1 * poll_s, POLL_S_MAX)
        return True

    def describe(self) -> str:
        parts = []
        for member in self.members.values():
            seen = member.look()
            parts.append(
                f"{member.name} is down"
                if not member.is_up
                else f"{member.name} is loading"
                if seen is None
                else f"{member.name} {seen.role} epoch={seen.epoch} leader={seen.leader_id} "
                f"end={seen.log_end_offset} hw={seen.high_watermark} applied={seen.image.end_offset}"
            )
        return "; ".join(parts)
