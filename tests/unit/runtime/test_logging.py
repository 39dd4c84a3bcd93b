from __future__ import annotations

import io
import json
import re

from strandline.runtime.logging import make_logger


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line_of_json() -> None:
    stream = io.StringIO()
    make_logger(stream).bind(node=1).info("started", topics=3, path=b"x")
    (line,) = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(line.pop("timestamp")))
    assert line == {"event": "started", "level": "info", "node": 1, "topics": 3, "path": "b'x'"}


def test_what_is_bound_stays_with_its_logger() -> None:
    stream = io.StringIO()
    logger = make_logger(stream)
    logger.bind(node=1)
    logger.warning("w")
    assert "node" not in lines(stream)[0]


def test_less_than_the_level_is_not_written() -> None:
    stream = io.StringIO()
    logger = make_logger(stream, "warning")
    logger.debug("a")
    logger.info("b")
    logger.error("c")
    assert [line["event"] for line in lines(stream)] == ["c"]


def test_an_exception_is_told_inside_its_line() -> None:
    stream = io.StringIO()
    logger = make_logger(stream)
    logger.error("failed", exc_info=ValueError("one\ntwo"))
    try:
        raise KeyError("k")
    except KeyError:
        logger.exception("failed")
    first, second = lines(stream)
    assert "ValueError: one\ntwo" in str(first["exception"])
    assert "KeyError: 'k'" in str(second["exception"])


def test_a_terminal_gets_lines_for_people() -> None:
    stream = io.StringIO()
    make_logger(stream, terminal=True).bind(node=1).info("started", topics=3)
    text = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert "started" in text
    assert "node=1" in text
    assert text.count("\n") == 1
