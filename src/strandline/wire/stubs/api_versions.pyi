"""ApiVersions (18): its request, versions 0-4, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class ApiVersionsResponse(ApiResponse):
    class ApiVersion(TypedMessage):
        api_key: int = ...
        min_version: int = ...
        max_version: int = ...

    class SupportedFeatureKey(TypedMessage):
        name: str = ...  # since v3
        min_version: int = ...  # since v3
        max_version: int = ...  # since v3

    class FinalizedFeatureKey(TypedMessage):
        name: str = ...  # since v3
        max_version_level: int = ...  # since v3
        min_version_level: int = ...  # since v3

    error_code: int = ...
    api_keys: list[ApiVersionsResponse.ApiVersion] = ...
    throttle_time_ms: int = ...  # since v1
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = ...  # since v3
    finalized_features_epoch: int = ...  # since v3
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = ...  # since v3
    zk_migration_ready: bool = ...  # since v3

class ApiVersionsRequest(ApiRequest[ApiVersionsResponse]):
    client_software_name: str = ...  # since v3
    client_software_version: str = ...  # since v3
