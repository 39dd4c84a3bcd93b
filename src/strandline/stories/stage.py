"""The stage of a story: a cluster of real nodes in the simulator, verbs to act on it, and `narrate` to show its state.

A stage is calm: no message is late unless the story holds it. `until` checks after every single turn of every process, so a story
can stop the world between a request and its answer, show it, and cut a link or kill a broker right there.

Always true: nothing happens on a stage but what the story does and what the nodes do by themselves; the seed is the story's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar, Unpack

from strandline.client.aio import Admin, AsyncClient, ProducerConfig
from strandline.client.config import ACKS_ALL
from strandline.client.flow.descriptions import NewTopic
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.cluster import BROKER_PORT, SimulatedCluster
from strandline.histories.shape import Shape
from strandline.histories.transcript import Transcript
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.sim.context import SimProcess
from strandline.sim.network import NetworkLink
from strandline.sim.world import World
from strandline.stories.clients import POLL_S, Clients, IsolationLevel, ProducerSettings, SendOptions, SentMessage
from strandline.stories.frame_builder import FrameBuilder
from strandline.stories.frames import Anomaly, AnomalyKind, BilingualText, Frame, PlayedStory
from strandline.stories.nodes import StageNode
from strandline.stories.options import Option
from strandline.stories.request_counter import FETCH, RequestCounter
from strandline.stories.transactions import TransactionalProducer

T = TypeVar("T")
WITHIN_S = 20.0
CALM = NetworkLink(latency_s=0.0005, jitter_s=0.0, spike_probability=0.0)
FIRST_CONTROLLER = 3001
"""Node ids of controllers that are nothing else; they are `C1`, `C2` … on the stage."""
CHECKPOINT_S = 0.1
CONFIG = {
    "replica.lag.time.max.ms": "10000",
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "50",
    "replica.socket.timeout.ms": "30000",
    "replica.high.watermark.checkpoint.interval.ms": str(int(CHECKPOINT_S * 1000)),
    "auto.leader.rebalance.enable": "false",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class PointMissed(AssertionError):
    """The point of a story does not hold."""


class StoryTimeout(AssertionError):
    """A condition that a story waits for did not come true in time."""


class Stage:
    def __init__(self, world: World, options: Collection[Option] = ()) -> None:
        self.world = world
        self.options = frozenset(options)
        self.cluster: SimulatedCluster
        self.clients: Clients
        self.brokers: dict[str, StageNode] = {}
        self.controllers: dict[str, StageNode] = {}
        self.topic = ""
        self._frame_builder: FrameBuilder
        self._settings: dict[str, str] = {}
        self._frames: list[Frame] = []
        self._wrong: list[Anomaly] = []
        self._held: dict[tuple[str, str], None] = {}
        self._point: BilingualText | None = None
        self._waits: list[tuple[Callable[[], object], asyncio.Future[None]]] = []
        self._image = MetadataImage()
        self._request_counter = RequestCounter()
        self._began_at = 0.0
        _calm(world)

    def has(self, option: Option) -> bool:
        """Whether the story is played with this option."""
        return option in self.options

    # Opening

    async def open(
        self,
        *,
        brokers: Sequence[str] = ("101", "102", "103"),
        controllers: int | Sequence[str] = 1,
        topic: str = "peter-test01",
        partitions: int = 1,
        assignments: Mapping[int, Sequence[str]] | None = None,
        min_isr: int = 1,
        topic_config: Mapping[str, str] | None = None,
        node_config: Mapping[str, str] | None = None,
        lanes: str = "topic",
    ) -> None:
        """Start the nodes and make the topic; the first broker leads, unless `assignments` (partition to replicas) says otherwise.

        A broker whose name is a number has that id; others are 1, 2, 3 … `controllers`: how many there are beside the brokers, or
        the names of brokers that are controllers too. `lanes="metadata"` shows the metadata log, of controllers first.
        No topic is made if `topic` is "".
        """
        names = {name: int(name) if name.isdigit() else number for number, name in enumerate(brokers, 1)}
        if isinstance(controllers, int):
            voters = {f"C{number + 1}": FIRST_CONTROLLER + number for number in range(controllers)}
        else:
            voters = {name: names[name] for name in controllers}
        shape = Shape(tuple(voters.values()), tuple(names.values()), config=CONFIG | dict(node_config or {}))
        self.topic = topic
        transcript = Transcript(lambda: self.world.now)
        self.cluster = SimulatedCluster(self.world, shape, [], transcript)
        self.world.network.tap = self._request_counter
        self.world.loop.after_turn = self._after_turn
        members = self.cluster.members
        for member in members.values():
            member.machine.disk.cold_probability = 0.0
        self.brokers = {name: StageNode(name, members[node_id], topic) for name, node_id in names.items()}
        apart = {name: StageNode(name, members[i], topic) for name, i in voters.items() if name not in names}
        self.controllers = apart or {name: self.brokers[name] for name in voters}
        addresses = [f"{node.host}:{BROKER_PORT}" for node in self.brokers.values()]
        self.clients = Clients(self.world.node, addresses, topic)
        replicas = assignments or {partition: list(brokers) for partition in range(partitions)}
        self._frame_builder = FrameBuilder(self, sorted(replicas) if topic else [], lanes)
        self._settings = dict(node_config or {})
        self.cluster.start()
        await self.until(lambda: all(member.is_started for member in members.values()), "all nodes are up")
        if topic:
            configs = {"min.insync.replicas": str(min_isr), **(topic_config or {})}
            self._settings = {"replication.factor": str(len(replicas[0])), **configs, **self._settings}
            await self._create(configs, replicas)
        self._began_at = self.world.now

    async def _create(self, configs: Mapping[str, str], replicas: Mapping[int, Sequence[str]]) -> None:
        assigned = {partition: [self.brokers[name].id for name in names] for partition, names in replicas.items()}
        new = NewTopic(self.topic, configs=configs, assignments=assigned)

        async def create(client: AsyncClient) -> None:
            answer = (await Admin(client).create_topics([new]))[self.topic]
            if isinstance(answer, KafkaError) and answer.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise answer

        await self.do("operator", create)
        await self.settle()

    def pin(self, name: str, value: object) -> None:
        """Name one more setting of the story."""
        self._settings[name] = str(value)

    async def close(self) -> None:
        await self.clients.close()

    # Who is there

    def __getitem__(self, name: str) -> StageNode:
        return self.brokers.get(name) or self.controllers[name]

    @property
    def nodes(self) -> dict[str, StageNode]:
        return {**self.controllers, **self.brokers}

    def name_of(self, node_id: int) -> str | None:
        return next((name for name, node in self.nodes.items() if node.id == node_id), None)

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that a controller has committed."""
        for node in self.controllers.values():
            seen = node.member.look()
            if seen is not None and seen.image.end_offset > self._image.end_offset:
                self._image = seen.image
        return self._image

    def state(self, partition: int = 0) -> PartitionImage | None:
        """The topic's partition as the controller has it."""
        return self.image.partition(self.topic, partition)

    @property
    def leader(self) -> str | None:
        """According to the controller."""
        return self.leader_of(0)

    def leader_of(self, partition: int) -> str | None:
        state = self.state(partition)
        return None if state is None else self.name_of(state.leader)

    @property
    def epoch(self) -> int:
        state = self.state()
        return -1 if state is None else state.leader_epoch

    @property
    def isr(self) -> list[str]:
        state = self.state()
        return [] if state is None else [self.name_of(i) or str(i) for i in state.isr]

    @property
    def active_controller(self) -> str | None:
        """The leader of the quorum in the newest epoch."""
        leading = [(a.quorum_epoch, n) for n, a in self.controllers.items() if a.is_up and a.quorum_role == "leader"]
        return max(leading)[1] if leading else None

    # Clients

    async def send_soon(
        self,
        name: str,
        *,
        client: str = "producer",
        acks: int = ACKS_ALL,
        idempotent: bool = True,
        partition: int = 0,
        key: str | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> SentMessage:
        """Send a message and go on; `settings` are those of ProducerConfig. Its answer: `await message.answered()`."""
        return await self.clients.send(name, client, acks, idempotent, partition, settings, key)

    async def send(self, *names: str, within_s: float = WITHIN_S, **how: Unpack[SendOptions]) -> list[SentMessage]:
        """Send messages one after the other, each when the one before was answered."""
        messages = []
        for name in names:
            message = await self.send_soon(name, **how)
            await self.until(lambda message=message: message.is_over, f"{name} is answered", within_s)  # type: ignore[misc]
            messages.append(message)
        return messages

    async def read(
        self,
        client: str = "consumer",
        *,
        offset: int = 0,
        partition: int = 0,
        wait_s: float = POLL_S,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> list[str]:
        """What a consumer reads from `offset` on until it finds nothing more for `wait_s`."""
        return await self.clients.read(client, offset, partition, wait_s, isolation_level)

    async def transactional(
        self, client: str, transactional_id: str, **settings: Unpack[ProducerSettings]
    ) -> TransactionalProducer:
        """A producer of transactions; it has not taken over its id yet."""
        config = ProducerConfig(transactional_id=transactional_id, linger_ms=0, **settings)
        producer = await self.clients.producer(client, config)
        return TransactionalProducer(self.clients, client, self.world.node(client), producer, self.topic)

    async def do(self, client: str, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
        """Anything else that a client can do: `await stage.do("operator", lambda client: Admin(client).…)`."""
        return await self.clients.do(client, work)

    def requests(self, source: str, target: str, api_key: int = FETCH) -> int:
        """How many requests of one API have left `source` for `target` so far."""
        return self._request_counter.requests[self._host(source), self._host(target), api_key]

    # The world

    def kill(self, *names: str) -> None:
        """As SIGKILL: the process is gone, what it wrote stays. Clients have names too."""
        for name in names:
            if name in self.nodes:
                self.cluster.kill(self[name].id)
            else:
                self.world.node(name).kill()

    def power_loss(self, *names: str) -> None:
        """The host goes dark: what was not on the device is lost."""
        for name in names:
            self.cluster.power_loss(self[name].id)

    async def stop(self, name: str) -> None:
        """As SIGTERM: a controlled shutdown."""
        await self.cluster.stop(self[name].id)

    def restart(self, *names: str) -> None:
        """Let it start; wait with `until(lambda: stage["101"].is_back)`."""
        for name in names:
            self.cluster.start(self[name].id)

    def pause(self, name: str) -> None:
        """As SIGSTOP. Clients have names too."""
        if name in self.nodes:
            self.cluster.pause(self[name].id)
        else:
            self.world.node(name).pause()

    def resume(self, name: str) -> None:
        if name in self.nodes:
            self.cluster.resume(self[name].id)
        else:
            self.world.node(name).resume()

    def hold(self, source: str, target: str) -> None:
        """Keep back all that `source` sends to `target`; nothing is lost, it arrives on `release`. Clients have names too."""
        self._held[source, target] = None
        self.world.network.cut_one_way(self._host(source), self._host(target))

    def cut(self, one: str, other: str) -> None:
        """Hold both ways."""
        self.hold(one, other)
        self.hold(other, one)

    def isolate(self, name: str) -> None:
        """Cut it off from every other node."""
        for other in self.nodes:
            if other != name:
                self.cut(name, other)

    def release(self, source: str | None = None, target: str | None = None) -> None:
        """Let through what was held from `source` to `target`, or all that is held."""
        chosen = [(s, t) for s, t in self._held if source in (None, s) and target in (None, t)]
        for pair in chosen:
            del self._held[pair]
        for one, other in chosen:
            self.world.network.heal(self._host(one), self._host(other))
        for still in self._held:
            self.world.network.cut_one_way(*map(self._host, still))

    def _host(self, name: str) -> str:
        return self.nodes[name].host if name in self.nodes else self.world.node(name).name

    # Waiting

    async def until(self, condition: Callable[[], object], what: str = "", within_s: float = WITHIN_S) -> None:
        """Go on right after the turn that made the condition true; StoryTimeout if it takes too long."""
        if condition():
            return
        reached = self.world.loop.create_future()
        entry = (condition, reached)
        self._waits.append(entry)
        try:
            await asyncio.wait_for(reached, within_s)
        except TimeoutError:
            raise StoryTimeout(f"{what or condition}: not within {within_s} s; {self._describe()}") from None
        finally:
            if entry in self._waits:
                self._waits.remove(entry)

    def _after_turn(self, process: SimProcess) -> None:
        for condition, reached in self._waits:
            if not reached.done() and condition():
                reached.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)

    async def settle(self, within_s: float = WITHIN_S) -> None:
        """Wait until every live replica is in sync, has all records, knows them committed, and has written its checkpoint."""
        await self.until(self._has_settled, "all replicas have caught up", within_s)
        await self.wait(2 * CHECKPOINT_S)

    def _has_settled(self) -> bool:
        for partition in self._frame_builder.partitions:
            state = self.state(partition)
            if state is None or not state.has_leader:
                return False
            live = [node for node in self.brokers.values() if node.is_up and node.id in state.replicas]
            ends = {(node.end_of(partition), node.high_watermark_of(partition)) for node in live}
            if len(ends) != 1 or len(set(next(iter(ends)))) != 1:
                return False
            leader = self[self.name_of(state.leader) or ""].replica(partition)
            if leader is None or not leader.leads or not {node.id for node in live} <= set(state.isr):
                return False
            if any(node.replica(partition) is None for node in live):
                return False
        return True

    def _describe(self) -> str:
        brokers = "; ".join(
            f"{name} {'down' if not node.is_up else 'leads' if node.leads else 'follows'} "
            f"e{node.epoch} {node.names} end={node.end} hw={node.high_watermark}"
            for name, node in self.brokers.items()
        )
        return f"{brokers}; leader {self.leader} e{self.epoch}, ISR {self.isr}, held {list(self._held)}"

    # Narration

    def narrate(self, en: str, ko: str) -> Frame:
        """One step: a sentence that says what happened and why, and a frame of how things stand."""
        frame = Frame(
            len(self._frames) + 1,
            round(self.world.now - self._began_at, 4),
            BilingualText(en, ko),
            self._frame_builder.lanes(self._wrong),
            self._frame_builder.quorum(),
            self._frame_builder.controlled(),
            self.clients.words(),
            tuple(f"{source}→{target}" for source, target in self._held),
            tuple(self._wrong),
        )
        self._frames.append(frame)
        return frame

    def show(self, lanes: str | None = None, *, metadata_from: int | None = None, nodes: Sequence[str] = ()) -> None:
        """What the frames from now on show: "topic" or "metadata" lanes, of all or of these, the metadata log from an offset on."""
        self._frame_builder.show(lanes, metadata_from, nodes)

    def note_of(self, client: str, en: str, ko: str) -> None:
        """Let the next frame say this of a client."""
        self.clients.note(client, BilingualText(en, ko))

    def lost(self, name: str, en: str = "", ko: str = "") -> None:
        """A message is gone that should be there. Every frame from now on marks it; say where or how in both languages."""
        self._wrong.append(Anomaly(AnomalyKind.LOST, name, BilingualText(en, ko)))

    def doubled(self, name: str, en: str = "", ko: str = "") -> None:
        self._wrong.append(Anomaly(AnomalyKind.DOUBLED, name, BilingualText(en, ko)))

    def reordered(self, name: str, en: str = "", ko: str = "") -> None:
        """A message is behind one that was sent after it."""
        self._wrong.append(Anomaly(AnomalyKind.REORDERED, name, BilingualText(en, ko)))

    def dirty(self, name: str, en: str = "", ko: str = "") -> None:
        """A message was read as committed, and never was."""
        self._wrong.append(Anomaly(AnomalyKind.DIRTY, name, BilingualText(en, ko)))

    def diverged(self, offset: int, en: str = "", ko: str = "") -> None:
        """At this offset the logs hold different messages."""
        self._wrong.append(Anomaly(AnomalyKind.DIVERGED, str(offset), BilingualText(en, ko)))

    def point(self, condition: object, en: str, ko: str) -> None:
        """What the story is there to show. It raises unless it is so."""
        if not condition:
            raise PointMissed(f"{en} - but: {self._describe()}")
        self._point = BilingualText(en, ko)

    def finish(
        self, name: str, title: BilingualText, options: tuple[str, ...], note: BilingualText | None
    ) -> PlayedStory:
        assert self._point is not None, f"the story '{name}' makes no point"
        settings = tuple(self._settings.items())
        return PlayedStory(name, title, options, settings, tuple(self._frames), self._point, note)


def _calm(world: World) -> None:
    network = world.network
    network.default_link = CALM
    network.split_probability = network.hold_probability = network.empty_read_probability = 0.0
    network.retransmit_max_s = 0.0
    network.give_up_s = 3600.0
