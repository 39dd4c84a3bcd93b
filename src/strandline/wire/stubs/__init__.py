"""Kafka's messages as mypy sees them: one stub for each API, written from the schemas. At run time there is nothing here.

The classes themselves are made when they are first used (`wire/message.py`), since loading all schemas takes two seconds. A file
that names them imports them for mypy alone, and gets the classes from `messages` by a key that mypy knows, a literal or a Final:

    from strandline.wire import messages

    if TYPE_CHECKING:
        from strandline.wire.stubs.create_topics import CreateTopicsRequest, CreateTopicsResponse

    KEY: Final = 19

    def refusals(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
        response = messages.response(KEY)  # type[CreateTopicsResponse]; response(19) is the same
        return response(topics=[refusal(topic.name, code) for topic in request.topics])

    def refusal(name: str, code: ErrorCode) -> CreateTopicsResponse.CreatableTopicResult:
        return messages.response(KEY).CreatableTopicResult(name=name, error_code=code)

All structs of a message are attributes of its class, however deep they are nested. A field has the type that covers all versions of
its message, and may be None if it may in any of them; arrays are lists. `stubs.data` has headers, control records and the consumer
protocol's messages; `stubs.base` has ApiRequest and ApiResponse for code that handles all APIs alike:

    async def send[R](self, api_key: int, request: ApiRequest[R]) -> R: ...

(with a TypeVar bound to ApiResponse in Python 3.11): the type of the request says that of the response.

Always true: `make check` compares the stubs with the schemas (`python -m strandline.wire.stubs --check`).
"""
