from __future__ import annotations

from strandline.histories.judges.metadata.endpoint_of_listener import EndpointOfListener

from ..quorum.stage import broken, stage


def endpoint(host: bytes, port: int) -> bytes:
    return b"\0\0\0\7" + host + port.to_bytes(4, "big") + b"\0"


def test_the_endpoints_of_the_listener_that_was_asked_are_told() -> None:
    story = stage(EndpointOfListener)
    story.observed.see_answer(1, 9092, endpoint(b"n2", 9092))
    story.observed.see_answer(1, 9094, endpoint(b"n12", 9094))


def test_those_of_another_one_are_not() -> None:
    for asked, answered in ((9092, 9094), (9094, 9092)):
        with broken(EndpointOfListener):
            stage(EndpointOfListener).observed.see_answer(1, asked, endpoint(b"n2", answered))
