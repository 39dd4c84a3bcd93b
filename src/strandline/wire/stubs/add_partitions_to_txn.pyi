"""AddPartitionsToTxn (24): its request, versions 0-5, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from collections.abc import Sequence

from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class AddPartitionsToTxnResponse(ApiResponse):
    class AddPartitionsToTxnResult(TypedMessage):
        transactional_id: str = ...  # since v4
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...  # since v4

    class AddPartitionsToTxnTopicResult(TypedMessage):
        name: str = ...
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = ...

    class AddPartitionsToTxnPartitionResult(TypedMessage):
        partition_index: int = ...
        partition_error_code: int = ...

    throttle_time_ms: int = ...
    error_code: int = ...  # since v4
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = ...  # since v4
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...  # v0-v3

class AddPartitionsToTxnRequest(ApiRequest[AddPartitionsToTxnResponse]):
    class AddPartitionsToTxnTransaction(TypedMessage):
        transactional_id: str = ...  # since v4
        producer_id: int = ...  # since v4
        producer_epoch: int = ...  # since v4
        verify_only: bool = ...  # since v4
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...  # since v4

    class AddPartitionsToTxnTopic(TypedMessage):
        name: str = ...
        partitions: Sequence[int] = ...

    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ...  # since v4
    v3_and_below_transactional_id: str = ...  # v0-v3
    v3_and_below_producer_id: int = ...  # v0-v3
    v3_and_below_producer_epoch: int = ...  # v0-v3
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...  # v0-v3
