"""Transactions of a producer as transcripts: what the application calls, what the coordinator is asked, what it answers.

> call            of the application; `> call !! CODE` is refused
? question        what is asked now, or `nothing`
! answer          a pair, NONE, a code, `lost`, or `refused CODE`
= state           of the producer
level 2           of transaction.version, as a broker says when a connection is opened
busy, quiet       whether records are on their way
wait 0.02         the time until the next question
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from strandline.client.config import ProducerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.core.cluster_metadata import ClusterMetadata
from strandline.client.core.group.member import GroupMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.core.transaction import TransactionCore
from strandline.client.core.transaction_requests import OffsetsToCommit, TransactionQuestion, TransactionVerdict, judge
from strandline.client.core.versions import FinalizedFeatures
from strandline.client.errors import ProducerUnusable, UnsupportedApi
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.client.core.transaction_requests import TransactionalResponse

BACKOFF = Backoff(100, 1000)
STAMP = GroupMetadata("g", 3, "m", None)
NAMES = {22: "InitProducerId", 24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn", 26: "EndTxn", 28: "TxnOffsetCommit"}
INIT = """
    > init
    ? InitProducerId -1/-1
    ! 7/0
    = READY
"""


class Transcript:
    def __init__(self, level: int, *, is_two_phase: bool = False) -> None:
        self.cluster = ClusterMetadata()
        self.epoch = 0
        self.level(level)
        randomness = random.Random(1)
        self.core = TransactionCore("tid", 60_000, self.cluster, BACKOFF, randomness, is_two_phase=is_two_phase)
        self.now = 0.0
        self.is_quiet = True
        self.asked: TransactionQuestion | None = None
        self.offsets: list[OffsetsToCommit] = []
        self.admitted: list[bool] = []

    def level(self, level: int) -> None:
        self.epoch += 1
        self.cluster.learn_features(FinalizedFeatures(self.epoch, {"transaction.version": level}))

    def play(self, text: str) -> None:
        for line in filter(None, (line.split("#")[0].strip() for line in text.splitlines())):
            kind, _, rest = line.partition(" ")
            match kind:
                case ">":
                    self._call(*rest.split(" !! "))
                case "?":
                    question = self.core.question(self.now, is_quiet=self.is_quiet)
                    assert _text(question) == rest, line
                    self.asked = question or self.asked
                case "!":
                    self._answer(rest)
                case "=":
                    assert self.core.state.name == rest, line
                case "level":
                    self.level(int(rest))
                case "busy" | "quiet":
                    self.is_quiet = kind == "quiet"
                case "wait":
                    wait_s = self.core.retry_at - self.now
                    assert wait_s == pytest.approx(float(rest), rel=0.25), line
                    self.now = self.core.retry_at
                case _:
                    raise AssertionError(line)

    def _call(self, call: str, code: str = "NONE") -> None:
        name, *words = call.split()
        try:
            match name:
                case "init":
                    self.core.initialise()
                case "send":
                    self.core.ensure_open()
                    key = (words[0][:-2], int(words[0][-1]))
                    self.admitted.append(self.core.admits(key))
                    if self.admitted[-1]:
                        self.core.sends()
                case "offsets":
                    offsets = {("in", int(p)): OffsetAndMetadata(5) for p in words}
                    self.offsets.append(self.core.send_offsets(offsets, STAMP))
                case "fail":
                    self.core.batch_failed(KafkaError(ErrorCode[words[0]]))
                case _:
                    getattr(self.core, name)()
            refusal = "NONE"
        except KafkaError as error:
            refusal = error.code.name
        assert refusal == code, call

    def _answer(self, said: str) -> None:
        assert self.asked is not None
        if said == "lost":
            self.core.lost(self.now)
        elif said.startswith("refused "):
            self.core.refused(KafkaError(ErrorCode[said.split()[1]]))
        else:
            self.core.answered(_response(self.asked, said), self.now)


def _text(question: TransactionQuestion | None) -> str:
    """Through the wire format in the newest version that it may have."""
    if question is None:
        return "nothing"
    key, version = question.api_key, question.version_max
    assert version == {22: 5, 24: 3, 25: 4, 26: version, 28: version}[key]
    message = messages.decode_request(key, version, messages.encode_request(key, version, question.message))
    if key == 24:
        named = [f"{t.name}-{i}" for t in message.v3_and_below_topics for i in t.partitions]
        pair = f"{message.v3_and_below_producer_id}/{message.v3_and_below_producer_epoch}"
        return f"AddPartitionsToTxn {pair} {' '.join(named)}"
    text = f"{NAMES[key]} {message.producer_id}/{message.producer_epoch}"
    match key:
        case 25:
            text += f" {message.group_id}"
        case 26:
            text += f" {'commit' if message.committed else 'abort'} v{version}"
        case 28:
            assert (message.generation_id, message.member_id, question.group_id) == (3, "m", "g")
            named = [f"{t.name}-{p.partition_index}={p.committed_offset}" for t in message.topics for p in t.partitions]
            text += f" {' '.join(named)} v{version}"
    return text


def _response(question: TransactionQuestion, said: str) -> TransactionalResponse:
    if question.api_key == 24:
        return _added([ErrorCode[code] for code in said.split()])
    if question.api_key == 28:
        assert isinstance(question.message, messages.request(28))
        indexes = [p.partition_index for topic in question.message.topics for p in topic.partitions]
        return _committed(dict(zip(indexes, (ErrorCode[code] for code in said.split()), strict=False)))
    if "/" in said:
        producer_id, epoch = map(int, said.split("/"))
        if question.api_key == 22:
            return messages.response(22)(producer_id=producer_id, producer_epoch=epoch)
        return messages.response(26)(producer_id=producer_id, producer_epoch=epoch)
    match question.api_key:
        case 22:
            return messages.response(22)(error_code=ErrorCode[said])
        case 25:
            return messages.response(25)(error_code=ErrorCode[said])
    return messages.response(26)(error_code=ErrorCode[said])


def _added(codes: list[ErrorCode]) -> TransactionalResponse:
    R = messages.response(24)
    results = [
        R.AddPartitionsToTxnPartitionResult(partition_index=i, partition_error_code=c) for i, c in enumerate(codes)
    ]
    return R(results_by_topic_v3_and_below=[R.AddPartitionsToTxnTopicResult(name="t", results_by_partition=results)])


def _committed(codes: dict[int, ErrorCode]) -> TransactionalResponse:
    R = messages.response(28)
    partitions = [R.TxnOffsetCommitResponsePartition(partition_index=i, error_code=c) for i, c in codes.items()]
    return R(topics=[R.TxnOffsetCommitResponseTopic(name="in", partitions=partitions)])


def play(level: int, text: str) -> Transcript:
    transcript = Transcript(level)
    transcript.play(text)
    return transcript


# Taking the transactional id over


def test_txn_tc1_init_asks_until_the_last_transaction_has_ended() -> None:
    play(
        2,
        """
        > begin !! INVALID_TXN_STATE
        > init
        ? InitProducerId -1/-1
        ! CONCURRENT_TRANSACTIONS
        ? nothing
        wait 0.1
        ? InitProducerId -1/-1
        ! NOT_COORDINATOR
        wait 0.2
        ? InitProducerId -1/-1
        ! lost
        wait 0.4
        ? InitProducerId -1/-1
        > begin !! INVALID_TXN_STATE
        ! 7/3
        = READY
        > begin
        = IN_TRANSACTION
        > begin !! INVALID_TXN_STATE
        > init !! INVALID_TXN_STATE
        """,
    )


@pytest.mark.parametrize(
    "code", ["PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "INVALID_REQUEST"]
)
def test_a_producer_that_is_refused_its_id_can_only_be_closed(code: str) -> None:
    play(
        2,
        f"""
        > init
        ? InitProducerId -1/-1
        ! {code}
        = FATAL_ERROR
        > init !! {code}
        > begin !! {code}
        > abort !! {code}
        ? nothing
        """,
    )


# Below transaction.version 2


def test_txn_tc2_partitions_and_groups_are_added_first_and_an_epoch_serves_many_transactions() -> None:
    """TXN-TC2, TXN-TC3."""
    script = play(
        1,
        f"""
        {INIT}
        > begin
        busy
        > send t-0
        > send t-1
        > send t-0
        ? AddPartitionsToTxn 7/0 t-0 t-1
        > send t-0                       # is asked already
        ! CONCURRENT_TRANSACTIONS NONE
        ? nothing
        wait 0.02
        > send u-4
        ? AddPartitionsToTxn 7/0 t-0 t-1 u-4
        ! NONE
        > send t-0
        > send u-4
        > commit
        ? nothing                        # the records are on their way
        quiet
        ? EndTxn 7/0 commit v4
        ! NONE
        = READY
        ? nothing
        > begin
        > send t-0                       # is added again
        ? AddPartitionsToTxn 7/0 t-0
        ! NONE
        > commit
        ? EndTxn 7/0 commit v4
        ! NONE
        """,
    )
    assert script.admitted == [False, False, False, False, False, True, True, False]


def test_only_the_first_addition_is_repeated_soon() -> None:
    play(
        0,
        f"""
        {INIT}
        > begin
        > send t-0
        ? AddPartitionsToTxn 7/0 t-0
        ! NONE
        > send t-1
        ? AddPartitionsToTxn 7/0 t-1
        ! CONCURRENT_TRANSACTIONS
        wait 0.1
        """,
    )


def test_txn_tc3_nothing_sent_is_no_end() -> None:
    for level in (0, 2):
        play(
            level,
            f"""
            {INIT}
            > begin
            > commit
            ? nothing
            = READY
            > begin
            > abort
            ? nothing
            = READY
            """,
        )


def test_offsets_follow_their_group_and_precede_the_end() -> None:
    script = play(
        0,
        f"""
        {INIT}
        > offsets 0 !! INVALID_TXN_STATE
        > begin
        > offsets 0 1
        ? AddOffsetsToTxn 7/0 g
        ! NONE
        ? TxnOffsetCommit 7/0 in-0=5 in-1=5 v4
        ! NONE COORDINATOR_LOAD_IN_PROGRESS
        wait 0.1
        ? TxnOffsetCommit 7/0 in-1=5 v4
        ! NONE
        ? nothing
        > offsets 0
        > commit
        ? TxnOffsetCommit 7/0 in-0=5 v4
        ! NONE
        ? EndTxn 7/0 commit v4
        ! NONE
        = READY
        """,
    )
    assert [offsets.error for offsets in script.offsets] == [None, None]
    assert all(offsets.is_over for offsets in script.offsets)


def test_after_an_abort_the_next_transaction_has_another_epoch_and_waits_for_it() -> None:
    script = play(
        1,
        f"""
        {INIT}
        > begin
        > send t-0
        ? AddPartitionsToTxn 7/0 t-0
        ! NONE
        > abort
        ? EndTxn 7/0 abort v4
        ! NONE
        = READY
        ? InitProducerId 7/0
        > begin
        > send t-0
        ! CONCURRENT_TRANSACTIONS
        wait 0.02
        ? InitProducerId 7/0
        ! 7/1
        > send t-0
        ? AddPartitionsToTxn 7/1 t-0
        ! NONE
        > send t-0
        """,
    )
    assert script.admitted == [False, False, False, True]


@pytest.mark.parametrize("twice", ["AddPartitionsToTxn", "EndTxn"])
def test_txn_tc4_what_may_still_arrive_does_not_meet_the_next_transaction(twice: str) -> None:
    """TXN-TC4: two transactions of one epoch are one to a request that is late."""
    lost = {"AddPartitionsToTxn": "", "EndTxn": ""}
    lost[twice] = "! lost\nwait 0.1\n"
    again = {"AddPartitionsToTxn": "? AddPartitionsToTxn 7/0 t-0", "EndTxn": "? EndTxn 7/0 commit v4"}
    again = {name: question if lost[name] else "" for name, question in again.items()}
    play(
        0,
        f"""
        {INIT}
        > begin
        > send t-0
        ? AddPartitionsToTxn 7/0 t-0
        {lost["AddPartitionsToTxn"]}
        {again["AddPartitionsToTxn"]}
        ! NONE
        ? nothing                        # its own pair is good until it ends
        > send t-0
        > commit
        ? EndTxn 7/0 commit v4
        {lost["EndTxn"]}
        {again["EndTxn"]}
        ! NONE
        = READY
        ? InitProducerId 7/0
        ! 7/1
        """,
    )


def test_an_addition_that_may_be_done_is_known_before_the_abort_ends() -> None:
    play(
        0,
        f"""
        {INIT}
        > begin
        > send t-0
        ? AddPartitionsToTxn 7/0 t-0
        ! lost
        > abort
        ? AddPartitionsToTxn 7/0 t-0
        ! COORDINATOR_LOAD_IN_PROGRESS
        wait 0.1
        ? AddPartitionsToTxn 7/0 t-0
        ! NONE
        ? EndTxn 7/0 abort v4
        ! NONE
        """,
    )
    play(
        0,
        f"""
        {INIT}
        > begin
        > send t-0
        ? AddPartitionsToTxn 7/0 t-0
        ! UNKNOWN_TOPIC_OR_PARTITION
        > abort
        ? nothing
        = READY
        """,
    )


# From transaction.version 2 on


def test_txn_tc3_nothing_is_added_and_every_end_brings_the_next_pair() -> None:
    """TXN-TC2, TXN-TC3."""
    script = play(
        2,
        f"""
        {INIT}
        > begin
        busy
        > send t-0
        > offsets 0
        ? TxnOffsetCommit 7/0 in-0=5 v5
        ! CONCURRENT_TRANSACTIONS
        wait 0.02
        ? TxnOffsetCommit 7/0 in-0=5 v5
        ! NONE
        > commit
        ? nothing
        quiet
        ? EndTxn 7/0 commit v5
        ! 7/1
        = READY
        ? nothing
        > begin
        > send t-0
        > abort
        ? EndTxn 7/1 abort v5            # what was tried is aborted, whether it arrived or not
        ! 8/0
        ? nothing
        """,
    )
    assert script.admitted == [True, True]
    assert script.core.identity == (8, 0, True)


def test_txn_tc4_the_same_end_is_asked_until_there_is_an_answer() -> None:
    play(
        2,
        f"""
        {INIT}
        > begin
        > send t-0
        > commit
        ? EndTxn 7/0 commit v5
        > abort !! INVALID_TXN_STATE
        ! lost
        > abort !! INVALID_TXN_STATE     # it may be committed
        > begin !! INVALID_TXN_STATE
        > send t-0 !! INVALID_TXN_STATE
        wait 0.1
        ? EndTxn 7/0 commit v5
        ! NOT_COORDINATOR
        > commit                         # called again
        ? EndTxn 7/0 commit v5
        ! CONCURRENT_TRANSACTIONS
        wait 0.1
        ? EndTxn 7/0 commit v5
        ! 7/1
        = READY
        """,
    )


def test_a_commit_whose_end_was_not_asked_can_be_aborted() -> None:
    play(
        2,
        f"""
        {INIT}
        > begin
        > send t-0
        busy
        > commit
        ? nothing
        > abort
        quiet
        ? EndTxn 7/0 abort v5
        ! 7/1
        """,
    )


def test_txn_tc4_a_pair_that_was_given_up_is_never_used_again() -> None:
    play(
        2,
        f"""
        {INIT}
        > begin
        > send t-0
        > commit
        ? EndTxn 7/0 commit v5
        > init
        ? nothing                        # one request at a time
        ! 7/1
        = INITIALISING
        ? InitProducerId -1/-1
        ! 7/2
        = READY
        > begin
        > send t-0
        > commit
        ? EndTxn 7/2 commit v5
        ! lost
        > init
        ? InitProducerId -1/-1
        ! 7/4
        > begin
        > commit
        ? nothing
        = READY
        """,
    )


# The level of the cluster


def test_txn_tc1_the_protocol_changes_between_transactions_after_the_old_epoch_was_fenced() -> None:
    """And never within one (TXN-T46)."""
    script = play(
        0,
        f"""
        {INIT}
        > begin
        > send t-0
        ? AddPartitionsToTxn 7/0 t-0
        ! NONE
        level 2
        > send t-0
        > commit
        ? EndTxn 7/0 commit v4           # as it began
        ! NONE
        > begin
        > send t-0
        ? InitProducerId 7/0
        ! 7/1
        > send t-0
        level 0
        > commit
        ? EndTxn 7/1 commit v5
        ! 7/2
        ? nothing                        # nobody has this epoch
        > begin
        > send t-0
        ? AddPartitionsToTxn 7/2 t-0
        """,
    )
    assert script.admitted == [False, True, False, True, False]


def test_a_broker_that_lags_behind_is_not_believed() -> None:
    cluster = ClusterMetadata()
    assert cluster.transaction_version == 0
    cluster.learn_features(FinalizedFeatures(9, {"transaction.version": 2}))
    cluster.learn_features(FinalizedFeatures(8, {"transaction.version": 0}))
    cluster.learn_features(FinalizedFeatures(-1, {}))
    assert cluster.transaction_version == 2


# Errors


ABORTABLE = {
    "TRANSACTION_ABORTABLE",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_TXN_STATE",
    "UNKNOWN_PRODUCER_ID",
    "REQUEST_TIMED_OUT",
    "MESSAGE_TOO_LARGE",
    "TOPIC_AUTHORIZATION_FAILED",
}
FATAL = {
    "PRODUCER_FENCED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "INVALID_PRODUCER_ID_MAPPING",
    "UNSUPPORTED_VERSION",
}


@pytest.mark.parametrize("code", sorted(ABORTABLE))
def test_txn_tc5_after_a_failed_record_the_transaction_can_only_be_aborted(code: str) -> None:
    script = play(
        2,
        f"""
        {INIT}
        > begin
        > send t-0
        > offsets 0
        > fail {code}
        = ABORTABLE_ERROR
        > send t-0 !! TRANSACTION_ABORTABLE
        > offsets 0 !! TRANSACTION_ABORTABLE
        > commit !! TRANSACTION_ABORTABLE
        > init !! TRANSACTION_ABORTABLE
        ? nothing
        > abort
        ? EndTxn 7/0 abort v5
        ! 7/1
        = READY
        """,
    )
    assert script.offsets[0].error is not None


@pytest.mark.parametrize("code", sorted(FATAL))
def test_txn_tc5_after_a_fatal_error_of_a_record_the_producer_can_only_be_closed(code: str) -> None:
    play(
        2,
        f"""
        {INIT}
        > begin
        > send t-0
        > fail {code}
        = FATAL_ERROR
        > abort !! {code}
        > init !! {code}
        ? nothing
        """,
    )


def test_a_record_that_fails_while_the_rest_is_flushed_stops_the_commit() -> None:
    play(
        2,
        f"""
        {INIT}
        > begin
        > send t-0
        busy
        > commit
        > fail REQUEST_TIMED_OUT
        quiet
        ? nothing
        = ABORTABLE_ERROR
        """,
    )


def test_txn_tc5_verdicts() -> None:
    init, partitions, group, end, offsets = 22, 24, 25, 26, 28
    for key in (init, partitions, group, end):
        for code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE, ErrorCode.PRODUCER_FENCED):
            assert judge(key, code) is TransactionVerdict.FATAL
    for key in (init, partitions, group, end, offsets):
        assert judge(key, ErrorCode.CONCURRENT_TRANSACTIONS) is TransactionVerdict.AGAIN
        assert judge(key, ErrorCode.NOT_COORDINATOR) is TransactionVerdict.FIND
        assert judge(key, ErrorCode.INVALID_PRODUCER_ID_MAPPING) is TransactionVerdict.FATAL
    for number in (22, 25, 82, 113, 47, 48, 120, 30):
        assert judge(offsets, ErrorCode(number)) is TransactionVerdict.ABORTABLE
    assert judge(end, ErrorCode.TRANSACTION_ABORTABLE) is TransactionVerdict.ABORTABLE
    assert judge(end, ErrorCode.TRANSACTION_ABORTABLE, is_abort=True) is TransactionVerdict.FATAL
    assert judge(partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED) is TransactionVerdict.ABORTABLE


def test_the_error_that_counts_is_the_worst_of_an_answer() -> None:
    play(
        0,
        f"""
        {INIT}
        > begin
        > send t-0
        > send t-1
        ? AddPartitionsToTxn 7/0 t-0 t-1
        ! OPERATION_NOT_ATTEMPTED TOPIC_AUTHORIZATION_FAILED
        = ABORTABLE_ERROR
        > abort
        ? nothing                        # nothing was added
        = READY
        """,
    )
    play(
        0,
        f"""
        {INIT}
        > begin
        > send t-0
        ? AddPartitionsToTxn 7/0 t-0
        ! COORDINATOR_NOT_AVAILABLE INVALID_PRODUCER_EPOCH
        = FATAL_ERROR
        """,
    )


def test_a_group_that_refuses_spoils_only_the_transaction() -> None:
    for refusal in ("! ILLEGAL_GENERATION", "! refused GROUP_AUTHORIZATION_FAILED"):
        script = play(
            2,
            f"""
            {INIT}
            > begin
            > offsets 0
            ? TxnOffsetCommit 7/0 in-0=5 v5
            {refusal}
            = ABORTABLE_ERROR
            > abort
            ? EndTxn 7/0 abort v5
            ! 7/1
            """,
        )
        assert script.offsets[0].is_over
        assert script.offsets[0].error is not None


def test_a_coordinator_that_may_not_be_asked_is_fatal() -> None:
    play(
        2,
        """
        > init
        ? InitProducerId -1/-1
        ! refused TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        = FATAL_ERROR
        """,
    )


def test_offsets_that_an_answer_left_out_are_sent_again() -> None:
    play(
        2,
        f"""
        {INIT}
        > begin
        > offsets 0 1
        ? TxnOffsetCommit 7/0 in-0=5 in-1=5 v5
        ! NONE
        ? nothing
        wait 0.1
        ? TxnOffsetCommit 7/0 in-1=5 v5
        """,
    )


def test_a_producer_that_is_fenced_after_a_lost_end_says_what_it_does_not_know() -> None:
    script = play(
        2,
        f"""
        {INIT}
        > begin
        > send t-0
        > commit
        ? EndTxn 7/0 commit v5
        ! lost
        wait 0.1
        ? EndTxn 7/0 commit v5
        ! PRODUCER_FENCED
        """,
    )
    with pytest.raises(KafkaError, match="whether its last transaction was committed is not known"):
        script.core.begin()


# Two-phase commit


def test_txn_q1_two_phase_commit_is_asked_for_each_time_in_the_only_version_that_can() -> None:
    """Also for the pair that follows an abort: without it the coordinator would set a timeout."""
    script = Transcript(0, is_two_phase=True)
    script.core.initialise()
    for answer in ("7/0", "7/1"):
        question = script.core.question(script.now, is_quiet=True)
        assert question is not None
        assert (question.version_min, question.version_max) == (6, 6)
        sent = messages.decode_request(22, 6, messages.encode_request(22, 6, question.message))
        assert (sent.enable2_pc, sent.keep_prepared_txn) == (True, False)
        script.core.answered(_response(question, answer), script.now)
        if answer == "7/0":
            script.play(
                "> begin\n> send t-0\n? AddPartitionsToTxn 7/0 t-0\n! NONE\n> send t-0\n> abort\n? EndTxn 7/0 abort v4\n! NONE"
            )
    script.play("= READY")


def test_txn_q1_without_it_no_version_is_asked_that_may_still_change() -> None:
    script = Transcript(2)
    script.core.initialise()
    question = script.core.question(script.now, is_quiet=True)
    assert question is not None
    assert (question.version_min, question.version_max) == (0, 5)


@pytest.mark.parametrize("is_known", [False, True])
def test_txn_q1_a_refusal_says_what_brokers_need(is_known: bool) -> None:
    script = Transcript(2, is_two_phase=True)
    script.core.initialise()
    question = script.core.question(script.now, is_quiet=True)
    assert question is not None
    if is_known:
        script.core.answered(_response(question, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"), script.now)
    else:
        script.core.refused(UnsupportedApi(22, range(6, 7), range(6)))
    script.play("= FATAL_ERROR")
    needed = r"two-phase commit for transactional id 'tid' \(brokers need transaction\.two\.phase\.commit\.enable and unstable"
    with pytest.raises(ProducerUnusable, match=needed) as found:
        script.core.ensure_no_error()
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if is_known else ErrorCode.UNSUPPORTED_VERSION
    assert found.value.code is code
    assert is_known or "the broker serves versions 0-5" in found.value.message


def test_txn_q1_its_settings() -> None:
    config = ProducerConfig(transactional_id="tid", transaction_two_phase_commit_enable=True)
    assert config.record_timeout_ms == 120_000
    for others in ({}, {"transactional_id": "tid", "transaction_timeout_ms": 1000}):
        with pytest.raises(ValueError, match="transaction_two_phase_commit_enable"):
            ProducerConfig(transaction_two_phase_commit_enable=True, **others)  # type: ignore[arg-type]


# Settings


def test_txn_tc6_a_transactional_producer_is_idempotent_and_gives_no_record_more_time_than_its_transaction() -> None:
    config = ProducerConfig(transactional_id="tid")
    assert (config.transaction_timeout_ms, config.record_timeout_ms) == (60_000, 60_000)
    assert ProducerConfig(transactional_id="tid", delivery_timeout_ms=5_000).record_timeout_ms == 5_000
    assert ProducerConfig().record_timeout_ms == 120_000
    for wrong in ({"acks": 1}, {"enable_idempotence": False}, {"max_in_flight_requests_per_connection": 6}):
        with pytest.raises(ValueError, match=r"transactional_id|enable_idempotence"):
            ProducerConfig(transactional_id="tid", **wrong)
    with pytest.raises(ValueError, match="not empty"):
        ProducerConfig(transactional_id="")
