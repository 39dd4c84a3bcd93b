"""UpdateFeatures (57): its request, versions 0-2, and its response.

Written by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.
"""

from strandline.wire.stubs.base import ApiRequest, ApiResponse, TypedMessage

class UpdateFeaturesResponse(ApiResponse):
    class UpdatableFeatureResult(TypedMessage):
        feature: str = ...  # v0-v1
        error_code: int = ...  # v0-v1
        error_message: str | None = ...  # v0-v1

    throttle_time_ms: int = ...
    error_code: int = ...
    error_message: str | None = ...
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = ...  # v0-v1

class UpdateFeaturesRequest(ApiRequest[UpdateFeaturesResponse]):
    class FeatureUpdateKey(TypedMessage):
        feature: str = ...
        max_version_level: int = ...
        upgrade_type: int = ...  # since v1
        allow_downgrade: bool = ...  # v0

    timeout_ms: int = ...
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = ...
    validate_only: bool = ...  # since v1
