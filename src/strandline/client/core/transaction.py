"""The transactions of one producer without I/O: which request the coordinator gets next, and what its answer changes.

The shell asks for `question`, sends it, and calls `answered`, `lost` or `refused` once: one request at a time. It asks
again when the application has called, when an answer came, when no record is on its way any more, and at `retry_at`.

Two protocols (KIP-890), by the cluster's transaction.version, which is looked at between transactions only. Below 2 the
coordinator is told of each partition and group first, and all transactions of a producer share one epoch, so that what
is late may end up in the wrong one: whenever something may be late, or is missing in a sequence, InitProducerId asks
for the next epoch before the next transaction writes. From 2 on EndTxn's answer has the next pair, always.

Always true: EndTxn is asked only when no record and no offset is on its way, and again as it was until there is an
answer; no transaction writes under a pair that an unanswered EndTxn may have ended; after a failed record or offset
nothing is committed.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from strandline.client.core.backoff import Backoff, delay_s
from strandline.client.core.batches import NO_IDENTITY, ProducerIdentity
from strandline.client.core.cluster_metadata import ClusterMetadata
from strandline.client.core.group.member import GroupMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.core.transaction_requests import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    SURELY_NOT_ADDED,
    TXN_OFFSET_COMMIT,
    OffsetsToCommit,
    TransactionQuestion,
    TransactionRequests,
    TransactionVerdict,
    added,
    committed_offsets,
    first_that_counts,
    is_fatal,
    judge,
)
from strandline.client.core.transactional_state import ENDING, OPEN, TransactionalState
from strandline.client.errors import ProducerUnusable, TransactionAbortable, TransactionAborted, UnsupportedApi
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.client.core.transaction_requests import TransactionalResponse

FIRST_RETRY_S: Final = 0.02
"""After CONCURRENT_TRANSACTIONS to what begins a transaction: its own last one ends, which does not take long."""


class TransactionCore:
    def __init__(
        self,
        transactional_id: str,
        timeout_ms: int,
        cluster: ClusterMetadata,
        backoff: Backoff,
        randomness: random.Random,
        *,
        is_two_phase: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.is_two_phase = is_two_phase
        """The coordinator sets no timeout (KIP-939)."""
        self.state = TransactionalState.UNINITIALISED
        self.identity: ProducerIdentity = NO_IDENTITY
        self.is_v2 = False
        """This transaction, or the last, is of transaction.version 2 or later."""
        self.retry_at = float("-inf")
        """No question comes before that."""
        self._requests = TransactionRequests(transactional_id, timeout_ms, is_two_phase=is_two_phase)
        self._cluster = cluster
        self._backoff = backoff
        self._randomness = randomness
        self._failures = 0
        self._cause: KafkaError | None = None
        self._is_outcome_unknown = False
        self._asked: TransactionQuestion | None = None
        self._is_given_up = False
        """The answer to what is asked does not count any more."""
        self._doubtful: TransactionQuestion | None = None
        """An addition that may have been done: it is asked again before anything else."""
        self._may_be_late = False
        """A request of this transaction was not answered, and may still arrive."""
        self._needs_pair = False
        """The next pair is asked for before anything is written under this one again."""
        self._is_started = False
        """The coordinator may have it open."""
        self._ends_asked = 0
        self._partitions: set[TopicPartition] = set()
        self._new: dict[TopicPartition, None] = {}
        """Partitions to add; a dictionary because it keeps their order."""
        self._adding: tuple[TopicPartition, ...] = ()
        self._groups: set[str] = set()
        self._offsets: deque[OffsetsToCommit] = deque()

    # What the application calls

    def initialise(self) -> None:
        """Take the transactional id over, and give up what this producer began under it (TXN-TC4)."""
        if self.state in (TransactionalState.IN_TRANSACTION, TransactionalState.ABORTABLE_ERROR):
            raise self._refusal()
        if self.state is TransactionalState.FATAL_ERROR:
            raise self._failure()
        if self.state is not TransactionalState.INITIALISING:
            self._is_given_up = self._asked is not None
            self._doubtful = None
            self._drop(TransactionAborted())
            self._change(TransactionalState.INITIALISING)

    def begin(self) -> None:
        """Which protocol is spoken is decided here; going up, the old epoch is fenced first (TXN-TC1, TXN-T46)."""
        if self.state is not TransactionalState.READY:
            raise self._refusal()
        is_v2 = self._cluster.transaction_version >= 2
        self._needs_pair = self._needs_pair or (is_v2 and not self.is_v2)
        self.is_v2 = is_v2
        self._change(TransactionalState.IN_TRANSACTION)

    def commit(self) -> None:
        if self.state not in OPEN:
            raise self._refusal()
        self._change(TransactionalState.COMMITTING)

    def abort(self) -> None:
        can = (TransactionalState.IN_TRANSACTION, TransactionalState.ABORTABLE_ERROR, TransactionalState.ABORTING)
        if self.state not in can and not (self.state is TransactionalState.COMMITTING and not self._ends_asked):
            raise self._failure() if self.state is TransactionalState.FATAL_ERROR else self._refusal()
        if self.state is not TransactionalState.ABORTING:
            self._drop(TransactionAborted())
            self._change(TransactionalState.ABORTING)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], stamp: GroupMetadata
    ) -> OffsetsToCommit:
        self.ensure_open()
        sent = OffsetsToCommit(offsets, stamp)
        if not sent.is_over:
            self._offsets.append(sent)
            self.retry_at = float("-inf")
        return sent

    def ensure_open(self) -> None:
        """KafkaError unless records and offsets may be sent now."""
        if self.state is not TransactionalState.IN_TRANSACTION:
            raise self._refusal()

    @property
    def is_on_its_way(self) -> bool:
        """Something that the application called has not ended."""
        return self.state in ENDING or self.state is TransactionalState.INITIALISING

    @property
    def is_open(self) -> bool:
        """There is a transaction to abort."""
        return self.state in (TransactionalState.IN_TRANSACTION, TransactionalState.ABORTABLE_ERROR)

    def ensure_no_error(self) -> None:
        if self.state in (TransactionalState.ABORTABLE_ERROR, TransactionalState.FATAL_ERROR):
            raise self._failure()

    # What the records need

    @property
    def is_ending(self) -> bool:
        """Records are sent without lingering."""
        return self.state is TransactionalState.COMMITTING

    def admits(self, partition: TopicPartition) -> bool:
        """A batch of this partition may leave now. If not, and if that helps, the coordinator is told first (TXN-TC2)."""
        if self.state not in OPEN:
            return False
        if not self.is_v2 and partition not in self._partitions and partition not in self._adding:
            self._new[partition] = None
        return not self._needs_pair and (self.is_v2 or partition in self._partitions)

    def sends(self) -> None:
        """A batch leaves: from transaction.version 2 on that alone may open the transaction (TXN-TC3)."""
        self._is_started = True

    def batch_failed(self, error: KafkaError) -> None:
        """A record of it will not be in the log, or may be there and is not known to be (TXN-TC5)."""
        if self.state in (*OPEN, TransactionalState.ABORTABLE_ERROR, TransactionalState.ABORTING):
            if is_fatal(error.code):
                self._fail(error)
            else:
                self._fail_transaction(error)

    def why_dropped(self) -> KafkaError | None:
        """What to say of records that have to stay here; None: they are sent."""
        match self.state:
            case TransactionalState.ABORTABLE_ERROR | TransactionalState.FATAL_ERROR:
                return self._failure()
            case TransactionalState.ABORTING | TransactionalState.INITIALISING:
                return TransactionAborted()
        return None

    # Questions

    def question(self, now: float, *, is_quiet: bool) -> TransactionQuestion | None:
        """What to ask now. `is_quiet`: no record waits, none is in flight."""
        if self._asked is not None or now < self.retry_at:
            return None
        self._asked = self._next(is_quiet)
        return self._asked

    def _next(self, is_quiet: bool) -> TransactionQuestion | None:
        state, is_v2 = self.state, self.is_v2
        if state is TransactionalState.FATAL_ERROR:
            return None
        if state is TransactionalState.INITIALISING:
            return self._requests.init(NO_IDENTITY) if is_quiet else None
        if self._doubtful is not None:
            return self._doubtful
        can_end = state in ENDING and is_quiet and not self._offsets
        if can_end and not self._is_started:
            self._ended(NO_IDENTITY)
        elif can_end:
            self._ends_asked += 1
            return self._requests.end(self.identity, committed=state is TransactionalState.COMMITTING, is_v2=is_v2)
        if self._needs_pair and self.state in (*OPEN, TransactionalState.READY):
            return self._requests.init(self.identity)
        if self._new:
            self._adding = tuple(self._new)
            self._new.clear()
            return self._requests.add_partitions(self.identity, self._adding)
        if self._offsets:
            first = self._offsets[0]
            if not is_v2 and first.stamp.group_id not in self._groups:
                return self._requests.add_offsets(self.identity, first.stamp.group_id)
            self._is_started = True
            return self._requests.commit_offsets(self.identity, first.stamp, first.left, is_v2=is_v2)
        return None

    # Answers

    def answered(self, response: TransactionalResponse, now: float) -> TransactionVerdict:
        """FIND says that the node that was asked is not the coordinator."""
        asked = self._take_asked()
        if asked is None:
            return TransactionVerdict.DONE
        code = self._read(response)
        verdict = judge(asked.api_key, code, is_abort=self.state is TransactionalState.ABORTING)
        match verdict:
            case TransactionVerdict.DONE:
                self._failures = 0
                self._done(asked, response)
            case TransactionVerdict.FIND | TransactionVerdict.AGAIN:
                self._again(asked, code, now)
            case _:
                self._refused(verdict, KafkaError(code, self._name(asked)))
        return verdict

    def lost(self, now: float) -> None:
        """No answer came. What was asked may be done, or be done later, and then again (TXN-TC4)."""
        asked = self._take_asked()
        if asked is None:
            return
        self._may_be_late = self._may_be_late or asked.api_key != INIT_PRODUCER_ID
        self._again(asked, ErrorCode.NETWORK_EXCEPTION, now)

    def refused(self, error: KafkaError) -> None:
        """It could not be asked and never can be: no common version, no access to the coordinator."""
        asked = self._take_asked()
        if asked is not None:
            verdict = TransactionVerdict.ABORTABLE
            if asked.group_id is None or is_fatal(error.code):
                verdict = TransactionVerdict.FATAL
            if asked.api_key == INIT_PRODUCER_ID and isinstance(error, UnsupportedApi):
                error = KafkaError(error.code, f"{self._name(asked)}: {error.message}")
            self._refused(verdict, error)

    def _take_asked(self) -> TransactionQuestion | None:
        asked, self._asked = self._asked, None
        is_given_up, self._is_given_up = self._is_given_up, False
        return None if is_given_up or self.state is TransactionalState.FATAL_ERROR else asked

    def _read(self, response: TransactionalResponse) -> ErrorCode:
        if isinstance(response, messages.response(TXN_OFFSET_COMMIT)):
            return self._read_offsets(committed_offsets(response))
        if isinstance(response, messages.response(ADD_PARTITIONS_TO_TXN)):
            return added(response)
        one_code = tuple(messages.response(key) for key in (INIT_PRODUCER_ID, ADD_OFFSETS_TO_TXN, END_TXN))
        assert isinstance(response, one_code)
        return error_code(response.error_code)

    def _read_offsets(self, codes: dict[TopicPartition, ErrorCode]) -> ErrorCode:
        if self._offsets:
            left = self._offsets[0].left
            for key in [key for key, code in codes.items() if code is ErrorCode.NONE]:
                left.pop(key, None)
            if left and not any(codes.values()):
                return ErrorCode.REQUEST_TIMED_OUT  # partitions that it left out
        return first_that_counts(TXN_OFFSET_COMMIT, codes.values())

    def _done(self, asked: TransactionQuestion, response: TransactionalResponse) -> None:
        if isinstance(response, messages.response(INIT_PRODUCER_ID)):
            self._initialised(ProducerIdentity(response.producer_id, response.producer_epoch, True))
        elif isinstance(response, messages.response(END_TXN)):
            self._ended(ProducerIdentity(response.producer_id, response.producer_epoch, True))
        elif asked.api_key == ADD_PARTITIONS_TO_TXN:
            self._is_started = True
            self._partitions.update(self._adding)
            self._doubtful, self._adding = None, ()
        elif isinstance(asked.message, messages.request(ADD_OFFSETS_TO_TXN)):
            self._is_started = True
            self._groups.add(asked.message.group_id)
            self._doubtful = None
        elif self._offsets and self._offsets[0].is_over:
            self._offsets.popleft()

    def _initialised(self, identity: ProducerIdentity) -> None:
        self.identity = identity
        self._needs_pair = False
        if self.state is TransactionalState.INITIALISING:
            self.is_v2 = self._cluster.transaction_version >= 2
            self._forget()
            self._change(TransactionalState.READY)

    def _ended(self, identity: ProducerIdentity) -> None:
        if identity.producer_id >= 0:
            self.identity = identity
            self._needs_pair = False
        elif not self.is_v2:
            was_aborted = self.state is TransactionalState.ABORTING and self._is_started
            self._needs_pair = self._needs_pair or self._may_be_late or was_aborted
        self._forget()
        self._change(TransactionalState.READY)

    def _forget(self) -> None:
        self._is_started = self._may_be_late = False
        self._ends_asked = 0
        self._cause = None
        self._partitions.clear()
        self._groups.clear()
        self._adding = ()
        self._drop(TransactionAborted())

    def _again(self, asked: TransactionQuestion, code: ErrorCode, now: float) -> None:
        self._failures += 1
        is_addition = asked.api_key in (ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN)
        if is_addition and code not in SURELY_NOT_ADDED:
            self._doubtful = asked
        elif is_addition:
            self._doubtful = None
            if self.state in OPEN:
                self._new = dict.fromkeys(self._adding) | self._new
            self._adding = ()
        is_first = not self._partitions and not self._groups and asked.api_key != END_TXN
        if code is ErrorCode.CONCURRENT_TRANSACTIONS and is_first and self.state is not TransactionalState.INITIALISING:
            self.retry_at = now + FIRST_RETRY_S
        else:
            self.retry_at = now + delay_s(self._backoff, self._failures, self._randomness)

    # Errors

    def _refused(self, verdict: TransactionVerdict, error: KafkaError) -> None:
        self._doubtful, self._adding = None, ()
        if verdict is TransactionVerdict.FATAL:
            self._fail(error)
        else:
            self._fail_transaction(error)

    def _fail_transaction(self, error: KafkaError) -> None:
        if self.state in OPEN:
            self._cause = error
            self._drop(TransactionAbortable(error))
            self._ends_asked = 0
            self._change(TransactionalState.ABORTABLE_ERROR)

    def _fail(self, error: KafkaError) -> None:
        self._cause = error
        self._is_outcome_unknown = self.state is TransactionalState.COMMITTING and self._ends_asked > 1
        self._drop(ProducerUnusable(error))
        self._change(TransactionalState.FATAL_ERROR)

    def _drop(self, error: KafkaError) -> None:
        self._new.clear()
        for offsets in self._offsets:
            offsets.error = error
        self._offsets.clear()

    def _change(self, state: TransactionalState) -> None:
        self.state = state
        self._failures = 0
        self.retry_at = float("-inf")

    def _failure(self) -> KafkaError:
        """A new exception each time: one that is raised in many places would collect their tracebacks."""
        assert self._cause is not None
        if self.state is TransactionalState.FATAL_ERROR:
            return ProducerUnusable(self._cause, is_outcome_unknown=self._is_outcome_unknown)
        return TransactionAbortable(self._cause)

    def _refusal(self) -> KafkaError:
        if self.state is TransactionalState.FATAL_ERROR or self.state is TransactionalState.ABORTABLE_ERROR:
            return self._failure()
        return KafkaError(ErrorCode.INVALID_TXN_STATE, self.state.value)

    def _name(self, asked: TransactionQuestion) -> str:
        end = "commit" if self.state is TransactionalState.COMMITTING else "abort"
        what = {
            INIT_PRODUCER_ID: "a producer id with two-phase commit" if self.is_two_phase else "a producer id",
            ADD_PARTITIONS_TO_TXN: "adding partitions",
            ADD_OFFSETS_TO_TXN: "adding offsets",
            END_TXN: f"the {end}",
            TXN_OFFSET_COMMIT: f"offsets of group '{asked.group_id}'",
        }[asked.api_key]
        needed = ""
        if self.is_two_phase and asked.api_key == INIT_PRODUCER_ID:
            needed = " (brokers need transaction.two.phase.commit.enable and unstable.api.versions.enable)"
        return f"{what} for transactional id '{self.transactional_id}'{needed}"
