"""One follower's pull from one leader: a connection, a session, and a round that goes from reply to request in one
callback.

When a reply arrives, each partition takes its answer, and the next Fetch leaves before the callback returns: at
acks=all a producer waits for exactly this. A partition that can't be asked for rests and holds up no other: after a
failure for `replica.fetch.backoff.ms`, during a flush until it is done, over the throttle's rate until that allows.

Always true: what is asked for next says what this node has; a connection that ended, or a reply that is overdue, means
a new connection and a new session; an error of the log dir drops the partition, an error of our own ends the fetcher
and is heard.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from strandline.client.core.backoff import Backoff, delay_s
from strandline.client.core.fetch_session import BROKEN
from strandline.client.errors import ConnectionLost, UnsupportedApi
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.node.fetching import leader_offsets
from strandline.node.fetching.connection import FetchConnection
from strandline.node.fetching.dependencies import FetcherDependencies
from strandline.node.fetching.session import FIRST_EPOCH, FetcherSession, Followed
from strandline.ports import is_out_of_handles
from strandline.replica.following import FetchOutcome
from strandline.replica.partition import Partition
from strandline.wire.errors import MalformedRequest
from strandline.wire.fetch import KEY as FETCH
from strandline.wire.fetch import FetchedPartition, FetchRequest
from strandline.wire.fetch_asking import VERSIONS, FetchResponse, parse_response, write_request

PURPOSE = "fetch"
RECONNECT_MS_MIN = 10
IN_FLIGHT_MAX = 2
INTERRUPT_AFTER_S = 0.002
"""A partition that comes back while a Fetch is in flight waits so long for its reply, then a second one is sent after
it."""
OPENING_WAIT_MS = 50
"""So long a leader that has not named a session yet may keep a Fetch."""
FLUSH_WAIT_S = 0.01
"""So long the others wait for a flush, which saves a request; after that they go on without the one that is flushed."""


class Fetcher:
    def __init__(self, leader_id: int, dependencies: FetcherDependencies) -> None:
        config = dependencies.config
        self.leader_id = leader_id
        self.session = FetcherSession(config.replica_fetch_max_bytes)
        self._dependencies = dependencies
        self._backoff_s = config.replica_fetch_backoff_ms / 1000
        self._timeout_s = config.replica_socket_timeout_ms / 1000
        reconnect_ms_max = max(config.replica_fetch_backoff_ms, RECONNECT_MS_MIN)
        self._reconnect = Backoff(RECONNECT_MS_MIN, reconnect_ms_max)
        self._logger = dependencies.logger
        self._loop = asyncio.get_running_loop()
        self._connection: FetchConnection | None = None
        self._version = VERSIONS[-1]
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._numbers: deque[int] = deque()
        """Of the Fetches in flight, as the session counts them."""
        self._is_opening = True
        """The next Fetch is answered at once."""
        self._sent_at = 0.0
        self._failures = 0
        """Refusals and lost connections since the last answer that was none."""
        self._paused_until: float | None = None
        self._flush_wait_until: float | None = None
        self._out_of_range: list[Followed] = []
        self._reasons: dict[Followed, str] = {}
        """Why a partition failed last, so that the same is logged once."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_planned = False
        self._is_closed = False
        self._task = self._loop.create_task(self._run())

    # What the node asks for

    def follow(self, partition: Partition) -> None:
        """Fetch it from here on, or from the position that it has now."""
        self.session.follow(partition)
        self._go_on_soon()

    def unfollow(self, partition: Partition) -> None:
        followed = self.session.members.get(partition)
        if followed is not None:
            self._reasons.pop(followed, None)
            self.session.unfollow(partition)

    def close(self) -> asyncio.Task[None]:
        """End it; the task that ends with it can be waited for."""
        self._is_closed = True
        self._task.cancel()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._timer is not None:
            self._timer.cancel()
        return self._task

    def when_ended(self, on_ended: Callable[[asyncio.Task[None]], None]) -> None:
        self._task.add_done_callback(on_ended)

    # Connecting

    async def _run(self) -> None:
        while True:
            try:
                connection = await self._connect()
            except KafkaError as error:
                if not self._failures:
                    self._logger.warning("can't fetch from a leader", leader=self.leader_id, reason=error.message)
            else:
                self._dependencies.on_opened(self.leader_id)
                self._begin(connection)
                reason = await self._ended
                self._connection = None
                self._logger.info("a connection to a leader closed", leader=self.leader_id, reason=reason)
                self._dependencies.on_closed(self.leader_id, PURPOSE)
            self._failures += 1
            await asyncio.sleep(delay_s(self._reconnect, self._failures, self._dependencies.randomness))

    async def _connect(self) -> FetchConnection:
        address = self._dependencies.address_of(self.leader_id)
        if address is None:
            raise ConnectionLost(f"it is not known where broker {self.leader_id} is")
        config = self._dependencies.config
        connection = FetchConnection(
            f"strandline-{config.node_id}-{PURPOSE}", config.replica_fetch_response_max_bytes, self._closed
        )
        doubled_ms = config.socket_connection_setup_timeout_ms * 2.0 ** min(self._failures, 16)
        timeout_s = min(doubled_ms, config.socket_connection_setup_timeout_max_ms) / 1000
        self._ended = self._loop.create_future()
        await connection.open(address, self._dependencies.tls, timeout_s)
        assert connection.versions is not None, "it is open"
        try:
            self._version = connection.versions.pick(FETCH, VERSIONS[-1])
            if self._version < VERSIONS[0]:
                raise ConnectionLost(f"broker {self.leader_id} serves no Fetch of version {VERSIONS[0]} or newer")
        except (UnsupportedApi, ConnectionLost):
            connection.close()
            raise
        return connection

    def _begin(self, connection: FetchConnection) -> None:
        self._connection = connection
        self._numbers.clear()
        self._paused_until = self._flush_wait_until = None
        self._is_opening = True
        self.session.begin(self._version)
        self._go_on_soon()

    def _closed(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)

    def _fail(self, error: Exception) -> None:
        """A bug: the task ends with it, and the callback of the task reports it."""
        if self._connection is not None:
            self._connection.close()
        if not self._ended.done():
            self._ended.set_exception(error)

    # A round

    def _take_reply(self, frame: memoryview, position: int) -> None:
        number = self._numbers.popleft()
        try:
            response = parse_response(self._version, frame, position)
            if number >= self.session.first_number:
                if response.error_code:
                    self._refused(error_code(response.error_code))
                else:
                    self._failures = 0
                    self.session.answered(response.session_id)
                    self._take(response, number)
            self._send()
        except MalformedRequest:
            raise
        except Exception as error:
            self._fail(error)

    def _take(self, response: FetchResponse, number: int) -> None:
        now = self._loop.time()
        if response.topics:
            now_ms = self._dependencies.clock.wall_ms()
            find = self.session.find
            for topic, answers in response.topics:
                for answer in answers:
                    followed = find(topic, answer.partition, number)
                    if followed is not None:
                        self._take_answer(followed, answer, now, now_ms)
            if self._out_of_range:
                self._ask_offsets(now)

    def _take_answer(self, followed: Followed, answer: FetchedPartition, now: float, now_ms: int) -> None:
        partition, asked = followed.partition, followed.asked
        assert asked is not None, "it is in the session"
        try:
            outcome, taken_bytes, reason = partition.take(asked, answer, now_ms)
        except OSError as error:
            if is_out_of_handles(error):  # of the log dir that says nothing
                self.session.rest(followed, now + self._backoff_s)
                self._report_failed(followed, str(error))
            else:
                self._drop(partition, error)
            return
        if outcome is FetchOutcome.ADVANCED:
            # After no more than a watermark the leader knows where we are.
            if taken_bytes or partition.log.log_start_offset != asked.log_start_offset:
                self.session.name(followed)
        elif outcome is FetchOutcome.TRUNCATED:
            self.session.name(followed)
        elif outcome is FetchOutcome.OUT_OF_RANGE:
            self._out_of_range.append(followed)
        elif outcome is not FetchOutcome.NOTHING:
            # A stale answer: the metadata says what became of the partition, and names it again if it is still ours.
            self.session.rest(followed, now + self._backoff_s)
            if outcome is FetchOutcome.FAILED:
                self._report_failed(followed, reason)
            return
        if self._reasons and outcome is not FetchOutcome.OUT_OF_RANGE:
            self._reasons.pop(followed, None)
        throttles = self._dependencies.throttles
        if throttles.follower.limit is not None:
            followed.lag = max(answer.high_watermark - partition.log.log_end_offset, 0)
            if taken_bytes and throttles.binds_follower(partition):
                throttles.follower.record(taken_bytes, now)

    def _send(self) -> None:
        """Send the next Fetch, if there is anybody to ask for and it is time."""
        connection, session = self._connection, self.session
        if connection is None or connection.is_closed:
            return
        is_second = bool(self._numbers)
        if is_second and not self._may_interrupt():
            if (wake_at := session.next_wake()) is not None:
                self._wake_at(wake_at)
            return
        if self._paused_until is not None and not self._is_pause_over():
            return
        dependencies = self._dependencies
        config = dependencies.config
        rest_until = self._rest_until if dependencies.throttles.follower.limit is not None else None
        request = session.next_request(self._blocked, rest_until, only_if_named=is_second)
        if request is not None:
            self._flush_wait_until = None
            self._numbers.append(request.number)
            self._sent_at = self._loop.time()
            wait_ms = self._wait_ms(request.epoch)
            self._is_opening = False
            body = write_request(
                self._version,
                FetchRequest(
                    config.node_id,
                    dependencies.broker_epoch(),
                    wait_ms,
                    config.replica_fetch_min_bytes,
                    config.replica_fetch_response_max_bytes,
                    0,
                    request.session_id,
                    request.epoch,
                    request.topics,
                    request.forgotten,
                    "",
                    None,
                ),
            )
            connection.send(FETCH, self._version, body, self._timeout_s, self._take_reply)
            if session.is_due:
                self._wake_at(self._sent_at + INTERRUPT_AFTER_S)  # more than one request can name
        if (wake_at := session.next_wake()) is not None:
            self._wake_at(wake_at)

    def _wait_ms(self, session_epoch: int) -> int:
        """How long the leader may keep a Fetch. One that opens a session is not kept for long: none can follow it
        before the leader has named the session; but a leader that has no room for sessions is not asked all the
        time."""
        if self._is_opening:
            return 0
        wait_max_ms = self._dependencies.config.replica_fetch_wait_max_ms
        return wait_max_ms if session_epoch != FIRST_EPOCH else min(wait_max_ms, OPENING_WAIT_MS)

    def _may_interrupt(self) -> bool:
        """A Fetch is in flight: whether to send another one, for a partition that can't wait for the end of its long
        poll."""
        if not self.session.is_due or not self.session.is_open or len(self._numbers) >= IN_FLIGHT_MAX:
            return False
        at = self._sent_at + INTERRUPT_AFTER_S
        if at > self._loop.time():
            self._wake_at(at)
            return False
        return True

    # Who can't be asked for

    def _blocked(self, blocked: list[Followed]) -> bool:
        """Let them rest; whether the others wait too, because a flush is about to end."""
        flushing = []
        for followed in blocked:
            turn = self.session.rest(followed)
            partition = followed.partition
            # One that leads, is offline or gone stays here until the node follows or unfollows it.
            if not (partition.leads or partition.offline or partition.gone):
                flushing.append((followed, turn))
        if not flushing:
            return False
        for followed, turn in flushing:
            partition = followed.partition
            partition.when_written(partition.log.log_end_offset, partial(self._written, followed, turn))
        if self._numbers:
            return False
        now = self._loop.time()
        if self._flush_wait_until is None:
            self._flush_wait_until = now + FLUSH_WAIT_S
        self._wake_at(self._flush_wait_until)
        return now < self._flush_wait_until

    def _written(self, followed: Followed, turn: int, code: ErrorCode) -> None:
        if self.session.wake_turn(followed, turn):
            self._go_on_soon()

    def _rest_until(self, followed: Followed) -> float | None:
        """Kafka's rule: one that is throttled and not in sync is left out while the rate is above its limit."""
        throttles = self._dependencies.throttles
        if followed.lag == 0 or not throttles.binds_follower(followed.partition):
            return None
        now = self._loop.time()
        pause_s = throttles.follower.pause_s(now)
        return now + pause_s if pause_s else None

    def _refused(self, code: ErrorCode) -> None:
        """The leader did not take the request as a whole: begin anew, at once if only the session was lost."""
        self.session.begin(forget_id=code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._is_opening = True
        self._failures += 1
        if self._failures > 1 or code not in BROKEN:
            pause_s = delay_s(self._reconnect, self._failures, self._dependencies.randomness)
            self._paused_until = self._loop.time() + pause_s
            self._logger.info("a leader refused a fetch", leader=self.leader_id, code=code.name)

    def _is_pause_over(self) -> bool:
        assert self._paused_until is not None, "there is a pause"
        if self._paused_until > self._loop.time():
            self._wake_at(self._paused_until)
            return False
        self._paused_until = None
        return True

    def _drop(self, partition: Partition, error: OSError) -> None:
        self.unfollow(partition)
        self._dependencies.on_storage_error(partition, error)

    def _report_failed(self, followed: Followed, reason: str) -> None:
        if self._reasons.get(followed) != reason:
            self._reasons[followed] = reason
            self._logger.warning(
                "could not replicate", partition=str(followed.partition), leader=self.leader_id, reason=reason
            )

    # Out of the leader's range

    def _ask_offsets(self, now: float) -> None:
        """Before the next Fetch leaves, which would be answered first."""
        partitions, self._out_of_range = self._out_of_range, []
        # If no answer comes they ask again.
        turns = {followed: self.session.rest(followed, now + self._backoff_s) for followed in partitions}
        connection = self._connection
        if connection is not None:
            node_id = self._dependencies.config.node_id
            leader_offsets.ask(connection, node_id, partitions, self._timeout_s, partial(self._reset, turns))

    def _reset(self, turns: dict[Followed, int], followed: Followed, code: int, start: int, end: int) -> None:
        if followed.turn != turns[followed]:
            return
        partition = followed.partition
        if code:
            self._report_failed(followed, f"the leader refused ListOffsets with {error_code(code).name}")
            return
        try:
            partition.reset(start, end)
        except OSError as error:
            self._drop(partition, error)
        except Exception as error:
            self._fail(error)
        else:
            self.session.name(followed)
            self._go_on_soon()

    # Time

    def _go_on_soon(self) -> None:
        """Look for something to send once the caller is done: it may ask for more."""
        if not self._is_planned and not self._is_closed:
            self._is_planned = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_planned = False
        if self._is_closed or self._connection is None:
            return
        try:
            self.session.wake(self._loop.time())
            self._send()
        except Exception as error:
            self._fail(error)

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self._go_on()
