"""What the classes of all messages have in common, for mypy: every field is a keyword argument with a default."""

from typing import Generic, dataclass_transform

from typing_extensions import TypeVar

from strandline.wire.message import Message

ResponseT = TypeVar("ResponseT", bound="ApiResponse", covariant=True, default="ApiResponse")

@dataclass_transform(kw_only_default=True)
class TypedMessage(Message): ...

class ApiResponse(TypedMessage): ...

class ApiRequest(TypedMessage, Generic[ResponseT]):
    """A request that is answered with this response: `async def send(self, request: ApiRequest[R]) -> R`."""
