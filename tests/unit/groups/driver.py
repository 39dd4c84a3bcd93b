"""A shard with everything around it played by the test: its log, the time, and whoever waits for answers.

    driver = Driver(group_max_size="2")
    joined = driver.call("join_group", request, version=3)
    driver.advance(3)
    assert joined.response.generation_id == 1

Outcomes are carried out as the coordinator does: records are replayed at once (unless they say otherwise), appended,
and committed; at once too, unless the test has said `hold`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.groups import framing
from strandline.groups.caller import Caller
from strandline.groups.dependencies import GroupConfig
from strandline.groups.shard import GroupShard
from strandline.metadata.image import MetadataImage

START_S = 1000.0
START_WALL_MS = 1_700_000_000_000
CLIENT_HOST = "/127.0.0.1"


class Call:
    """A request, and what it was answered."""

    def __init__(self, hear: Callable[[Call], None], label: str = "") -> None:
        self.label = label
        self.is_answered = False
        self.response: Any = None
        self._hear = hear

    def __call__(self, response: Any) -> None:
        assert not self.is_answered, "answered twice"
        self.is_answered, self.response = True, response
        self._hear(self)

    @property
    def code(self) -> ErrorCode:
        assert self.is_answered
        return ErrorCode(self.response.error_code)


class Around:
    """The dependencies: `image` may be replaced at any time."""

    def __init__(self, config: NodeConfig, image: MetadataImage, seed: int) -> None:
        self.config = config
        self.image = image
        self.randomness = random.Random(seed)
        self.group_configs: dict[str, GroupConfig] = {}

    def group_config(self, group_id: str) -> GroupConfig:
        config = self.config
        return self.group_configs.get(group_id) or GroupConfig(
            config.group_consumer_session_timeout_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_assignment_interval_ms,
        )


def config_of(**settings: str) -> NodeConfig:
    """Keys with underscores."""
    texts = {
        "node.id": "1",
        "process.roles": "broker",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "c1:9093",
        "listeners": "PLAINTEXT://b1:9092",
        "log.dirs": "/data",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return NodeConfig.build(of(texts), insecure=True)


def check_invariants(shard: GroupShard) -> None:
    """As the simulator does after a turn."""
    shard.check_invariants()
    for group in shard.groups.values():
        group.check_invariants()


class Driver:
    def __init__(self, image: MetadataImage | None = None, seed: int = 1, **settings: str) -> None:
        self.around = Around(config_of(**settings), image or MetadataImage(), seed)
        self.shard = GroupShard(0, self.around)
        self.now = START_S
        self.log: list[tuple[bytes, bytes | None]] = []
        """What was appended, as bytes."""
        self.appended: Callable[[CoordinatorRecord], None] = lambda record: None
        self.answered: Callable[[Call], None] = lambda call: None
        self.refuses: ErrorCode | None = None
        """Why nothing may be appended now."""
        self._holds = False
        self._uncommitted: deque[CoordinatorResult] = deque()

    @property
    def at(self) -> Moment:
        return Moment(self.now, START_WALL_MS + round((self.now - START_S) * 1000))

    # Asking

    def call(self, name: str, request: Any, version: int, client_id: str = "client", label: str = "") -> Call:
        """An operation of the shard, by name."""
        call = Call(self.answered, label)
        self.carry_out(getattr(self.shard, name)(request, Caller(client_id, CLIENT_HOST, version), self.at, call))
        check_invariants(self.shard)
        return call

    def carry_out(self, result: CoordinatorResult | None) -> None:
        while result is not None:
            if self.refuses is not None:
                result = result.done(self.refuses, self.at)
                continue
            for record in result.records:
                if result.replayed:
                    self.shard.replay(record, self.at.wall_ms)
                self.log.append(framing.encode(record))
                self.appended(record)
            if self._holds:
                self._uncommitted.append(result)
                return
            result = result.done(ErrorCode.NONE, self.at)

    # Commits

    def hold(self) -> None:
        """What is appended from now on isn't committed, until `commit`."""
        self._holds = True

    def commit(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """What was held is committed now, or (with another code) can't be; later records are committed at once."""
        self._holds = False
        while self._uncommitted:
            self.commit_one(code)

    def commit_one(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """Only the first of what was held."""
        self.carry_out(self._uncommitted.popleft().done(code, self.at))
        check_invariants(self.shard)

    # Time

    def advance(self, seconds: float) -> None:
        """Let time pass; every timer fires at its own time."""
        end = self.now + seconds
        while (due := self.shard.timers.next_s) is not None and due <= end:
            self.now = max(self.now, due)
            callback = self.shard.timers.take(self.now)
            assert callback is not None
            self.carry_out(callback(self.at))
            check_invariants(self.shard)
        self.now = end

    # Life

    def reload(self, *, loses_uncommitted: bool = False) -> None:
        """Another coordinator takes over, from the log; what wasn't committed may not be there."""
        self.shard.unload()
        if loses_uncommitted:
            del self.log[len(self.log) - sum(len(result.records) for result in self._uncommitted) :]
        while self._uncommitted:
            self.carry_out(self._uncommitted.popleft().done(ErrorCode.NOT_COORDINATOR, self.at))
        self._holds = False
        self.shard = GroupShard(0, self.around)
        for key, value in self.log:
            record = framing.decode(key, value)
            assert record is not None
            self.shard.replay(record, self.at.wall_ms)
        self.carry_out(self.shard.loaded(self.at))
        check_invariants(self.shard)
