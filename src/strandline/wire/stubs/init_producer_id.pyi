"""InitProducerId (22): its request, versions 0-6, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse

class InitProducerIdResponse(ApiResponse):
    throttle_time_ms: int = ...
    error_code: int = ...
    producer_id: int = ...
    producer_epoch: int = ...
    ongoing_txn_producer_id: int = ...  # since v6
    ongoing_txn_producer_epoch: int = ...  # since v6

class InitProducerIdRequest(ApiRequest[InitProducerIdResponse]):
    transactional_id: str | None = ...
    transaction_timeout_ms: int = ...
    producer_id: int = ...  # since v3
    producer_epoch: int = ...  # since v3
    enable2_pc: bool = ...  # since v6
    keep_prepared_txn: bool = ...  # since v6
