"""What can go wrong between a client and a cluster, besides the codes that brokers answer.

Always true: each is a KafkaError whose text is one line that says what happened, where, and what may help.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid


class ConnectionLost(KafkaError):
    """The connection ended, or could not be opened. Whatever was in flight may or may not have been done."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class ProtocolViolation(ConnectionLost):
    """The server sent what no Kafka broker sends; its connection is closed and nothing from it is believed."""


class NoBrokerReachable(KafkaError):
    """No address of a cluster answers."""

    def __init__(self, addresses: Sequence[str], why: str) -> None:
        where = ", ".join(addresses)
        super().__init__(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"no broker reachable at {where} ({why}); is the cluster up, and are these its client listeners?",
        )

    @property
    def retriable(self) -> bool:
        """A cluster that is starting will answer soon."""
        return True


class UnsupportedApi(KafkaError):
    """The two sides have no version of an API in common."""

    def __init__(self, api_key: int, ours: range, theirs: range | None) -> None:
        said = "does not serve it" if theirs is None else f"serves versions {theirs.start}-{theirs.stop - 1}"
        super().__init__(
            ErrorCode.UNSUPPORTED_VERSION,
            f"API {api_key}: we speak versions {ours.start}-{ours.stop - 1}, the broker {said}",
        )


class MismatchedEndpoint(KafkaError):
    """An address is that of a controller where a broker is wanted, or the other way round."""

    def __init__(self, address: str, *, is_controller: bool) -> None:
        super().__init__(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"{address} is the listener of a {'controller' if is_controller else 'broker'}, and a "
            f"{'broker' if is_controller else 'controller'} is wanted: this address belongs in "
            f"{'bootstrap.controllers, a broker in bootstrap.servers' if is_controller else 'bootstrap.servers'}",
        )
        self.address = address
        self.is_controller = is_controller


class TimedOut(KafkaError):
    """The time for an operation is over. What was last heard is in the text."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class RecordTooLarge(KafkaError):
    def __init__(self, size_bytes: int, bound: str) -> None:
        super().__init__(ErrorCode.MESSAGE_TOO_LARGE, f"a record of {size_bytes} bytes is larger than {bound}")


class BufferExhausted(KafkaError):
    """More records wait to be sent than the producer may hold."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            f"{bytes_max} bytes of records are waiting to be sent; await drain() between sends, or raise buffer_memory",
        )


class Closed(KafkaError):
    def __init__(self, what: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, f"the {what} is closed")


class TransactionAborted(KafkaError):
    """A record of a transaction that the application aborted: it was not sent, or nobody reads it."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.TRANSACTION_ABORTABLE, "its transaction is aborted")


class TransactionAbortable(KafkaError):
    """The transaction cannot be committed any more. After abort_transaction the producer goes on with the next."""

    def __init__(self, cause: KafkaError) -> None:
        super().__init__(ErrorCode.TRANSACTION_ABORTABLE, f"this transaction can only be aborted: {cause}")
        self.__cause__ = cause


class ProducerUnusable(KafkaError):
    """A transactional producer that can do nothing any more, often because it was fenced; its code says why."""

    def __init__(self, cause: KafkaError, *, is_outcome_unknown: bool = False) -> None:
        unknown = "; whether its last transaction was committed is not known" if is_outcome_unknown else ""
        super().__init__(cause.code, f"{cause}; this producer can only be closed{unknown}")
        self.__cause__ = cause

    @property
    def retriable(self) -> bool:
        return False


class OffsetOutOfRange(KafkaError):
    """The position is not in the log, and no reset policy says where to go on."""

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int | None,
        log_start_offset: int | None = None,
        log_end_offset: int | None = None,
    ) -> None:
        """The log's bounds are None if they could not be asked for."""
        what = "no position yet" if offset is None else f"no offset {offset}"
        if log_start_offset is None or log_end_offset is None:
            text = f"{topic}-{partition} has {what}, and auto_offset_reset is 'none'; seek to where to go on"
        else:
            text = f"{topic}-{partition} has {what}: its log goes from {log_start_offset} to {log_end_offset}"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset

    @property
    def is_in_bounds(self) -> bool:
        """The log has this offset after all, as its bounds say that were asked for later."""
        if self.offset is None or self.log_start_offset is None or self.log_end_offset is None:
            return False
        return self.log_start_offset <= self.offset <= self.log_end_offset


class LogTruncated(KafkaError):
    """Records that were consumed are no longer in the log: an unclean election took them (KIP-320)."""

    def __init__(self, topic: str, partition: int, offset: int, divergent_offset: int | None) -> None:
        where = "at an unknown offset" if divergent_offset is None else f"at offset {divergent_offset}"
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{topic}-{partition} was truncated {where}, below the position {offset}; seek to where to go on",
        )
        self.topic = topic
        self.partition = partition
        self.divergent_offset = divergent_offset


class TopicRecreated(KafkaError):
    """The topic was deleted, and another has its name: offsets of the old one mean nothing in it."""

    def __init__(self, topic: str, topic_id: Uuid, found_id: Uuid) -> None:
        super().__init__(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"topic '{topic}' was deleted and made again: its id was {topic_id}, and is {found_id} now",
        )
        self.topic = topic
        self.topic_id = topic_id
        self.found_id = found_id
