"""A broker's life in the cluster: it registers, keeps its session by heartbeats, is unfenced, and stops in order.

What to send and when is decided in `broker_state.py`; here it is sent.

Always true: `broker_epoch` is the newest that the controller gave us; nothing is sent after `shut_down` or `close`
returned.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from strandline.config.node import NodeConfig
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import Uuid
from strandline.log.checkpoints import CLEAN_SHUTDOWN_FILE
from strandline.metadata.image import Endpoint
from strandline.node import broker_state as life
from strandline.node.broker_state import UNKNOWN_EPOCH, BrokerState
from strandline.node.controller_channel import ControllerChannel, top_level_error
from strandline.node.log_dirs import LogDir
from strandline.node.logger import Logger
from strandline.node.tasks import AsyncWork
from strandline.ports import Disk
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

R = TypeVar("R", bound="ApiResponse")

BROKER_REGISTRATION: Final = 62
BROKER_HEARTBEAT: Final = 63
REGISTRATION_TIMEOUT_S = 5.0
"""For one attempt; how long they go on is `initial.broker.registration.timeout.ms`."""
SHUTDOWN_TIMEOUT_S = 30.0


class LifecycleFailed(Exception):
    """This broker is not, or no longer, part of the cluster; says why."""


class BrokerFacts(NamedTuple):
    """What a broker says of itself when it registers."""

    cluster_id: str
    incarnation_id: Uuid
    endpoints: Callable[[], Sequence[Endpoint]]
    """Where clients and other brokers find it, once its listeners are bound."""
    features: Mapping[str, range]
    """Levels that this node can work with, by feature."""
    log_dirs: Sequence[Uuid]
    previous_broker_epoch: int = UNKNOWN_EPOCH


class BrokerLifecycle:
    def __init__(
        self,
        config: NodeConfig,
        channel: ControllerChannel,
        facts: BrokerFacts,
        logger: Logger,
        on_failed: Callable[[str], None],
    ) -> None:
        """`on_failed` gets the reason why the node can't go on."""
        self._config = config
        self._channel = channel
        self._facts = facts
        self._logger = logger
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self._life = life.BrokerLife(
            life.BrokerTimings(
                config.broker_heartbeat_interval_ms / 1000,
                config.initial_broker_registration_timeout_ms / 1000,
                config.log_dir_failure_timeout_ms / 1000,
            ),
            facts.previous_broker_epoch,
        )
        self._why = "it is shutting down"
        self._timer: asyncio.TimerHandle | None = None
        self._exchange: asyncio.Task[None] | None = None
        self._waiters: dict[asyncio.Future[None], None] = {}

    @property
    def state(self) -> BrokerState:
        return self._life.state

    @property
    def has_begun(self) -> bool:
        """It registers, or did: until then nothing that happens is of interest to it."""
        return self.state is not BrokerState.NOT_RUNNING

    @property
    def broker_epoch(self) -> int:
        """-1 until there is one."""
        return self._life.broker_epoch

    # What the node asks for

    async def start(self) -> None:
        await self.register()
        await self.unfence()

    async def register(self) -> None:
        """Begin to live; returns once the controller has registered us. LifecycleFailed if it never does."""
        self._step(life.Start())
        await self._until(lambda: self._life.is_registered)

    async def unfence(self) -> None:
        """Every local log is open: returns once the controller has unfenced us."""
        self._step(life.Ready())
        await self._until(lambda: self.state is BrokerState.RUNNING)

    async def shut_down(self, timeout_s: float = SHUTDOWN_TIMEOUT_S) -> None:
        """Have others take over what we lead (if `controlled.shutdown.enable`), then fall silent."""
        self._step(life.ShutDown(self._config.controlled_shutdown_enable, timeout_s))
        while self.state is not BrokerState.SHUTTING_DOWN:
            await self._change()
        await self.close()

    async def close(self) -> None:
        """Fall silent at once."""
        self._step(life.ShutDown(False, 0.0))
        if self._timer is not None:
            self._timer.cancel()
        if self._exchange is not None:
            self._exchange.cancel()
            await asyncio.wait([self._exchange])

    # What the node reports

    def metadata_applied(self, offset: int) -> None:
        """The metadata up to and with this offset is applied here."""
        if self.has_begun:
            self._step(life.Applied(offset))

    def controller_changed(self) -> None:
        """Another controller is active, or our connection to it closed: it hears from us at once."""
        if self.has_begun:
            self._step(life.ControllerChanged())

    def dir_failed(self, log_dir: LogDir) -> None:
        if self.has_begun:
            self._step(life.DirFailed(log_dir.directory_id))

    # Doing

    def _step(self, event: life.Event) -> None:
        before = self.state
        effects = self._life.step(event, self._loop.time())
        if self.state is not before:
            self._logger.info("broker state", state=self.state.name, broker_epoch=self.broker_epoch)
        for effect in effects:
            match effect:
                case life.Register():
                    self._send(self._register(effect))
                case life.Heartbeat():
                    self._send(self._beat(effect))
                case life.LeaveCluster(reason):
                    self._why = reason
                    self._on_failed(reason)
        self._set_timer()
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._life.deadline != float("inf"):
            self._timer = self._loop.call_at(self._life.deadline, self._step, life.BrokerTick())

    def _send(self, exchange: AsyncWork[None]) -> None:
        self._exchange = self._loop.create_task(exchange)
        self._exchange.add_done_callback(self._exchanged)

    def _exchanged(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.error("could not talk to the controller", exc_info=error)
            self._on_failed(str(error))

    async def _register(self, effect: life.Register) -> None:
        request = messages.request(BROKER_REGISTRATION)
        facts = self._facts
        message = request(
            broker_id=self._config.node_id,
            cluster_id=facts.cluster_id,
            incarnation_id=facts.incarnation_id,
            listeners=[
                request.Listener(name=e.listener, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in facts.endpoints()
            ],
            features=[
                request.Feature(name=name, min_supported_version=levels[0], max_supported_version=levels[-1])
                for name, levels in facts.features.items()
            ],
            rack=self._config.broker_rack,
            is_migrating_zk_broker=False,
            log_dirs=sorted(set(facts.log_dirs) - self._life.offline_dirs),
            previous_broker_epoch=effect.previous_broker_epoch,
        )
        response = await self._ask(BROKER_REGISTRATION, message, REGISTRATION_TIMEOUT_S)
        if response is not None:
            self._logger.info("registered", broker_epoch=response.broker_epoch)
            self._step(life.Registered(response.broker_epoch))

    async def _beat(self, effect: life.Heartbeat) -> None:
        message = messages.request(BROKER_HEARTBEAT)(
            broker_id=self._config.node_id,
            broker_epoch=effect.broker_epoch,
            current_metadata_offset=effect.metadata_offset,
            want_fence=effect.want_fence,
            want_shut_down=effect.want_shut_down,
            offline_log_dirs=list(effect.offline_dirs),
        )
        # Two must fit into a session.
        response = await self._ask(BROKER_HEARTBEAT, message, self._config.broker_session_timeout_ms / 2000)
        if response is not None:
            self._step(life.Answered(response.is_caught_up, response.is_fenced, response.should_shut_down, effect))

    async def _ask(self, api_key: int, message: ApiRequest[R], timeout_s: float) -> R | None:
        """The response, or None if there was none or it is a refusal."""
        try:
            response = await self._channel.ask(api_key, message, timeout_s, retry=True)
        except KafkaError as error:
            self._logger.info("the controller was not reached", api_key=api_key, error=error.message)
            self._step(life.ControllerUnanswered(error.message))
            return None
        code = error_code(top_level_error(response))
        if code is not ErrorCode.NONE:
            self._logger.warning("the controller refused", api_key=api_key, error=code.name)
            self._step(life.ControllerRefused(code))
            return None
        return response

    # Waiting

    async def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            if self.state is BrokerState.SHUTTING_DOWN:
                raise LifecycleFailed(self._why)
            await self._change()

    async def _change(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            self._waiters.pop(waiter, None)


def previous_broker_epoch(disk: Disk, paths: Sequence[str]) -> int:
    """The epoch under which this broker last shut down in order; -1 if it did not, in any of its log dirs.

    To be asked before the log dirs are opened, which removes the mark. One that can't be read does not count: what was
    in it is offline, which the registration says. Blocks.
    """
    epochs = {epoch for path in paths if (epoch := _epoch_in(disk, f"{path}/{CLEAN_SHUTDOWN_FILE}")) is not None}
    return epochs.pop() if len(epochs) == 1 else UNKNOWN_EPOCH


def _epoch_in(disk: Disk, path: str) -> int | None:
    try:
        if not disk.exists(path):
            return UNKNOWN_EPOCH
        mark = json.loads(disk.read_file(path))
        return int(mark["brokerEpoch"])
    except OSError:
        return None
    except (ValueError, TypeError, KeyError, OverflowError):
        return UNKNOWN_EPOCH  # an empty file, as older versions of Kafka leave it
