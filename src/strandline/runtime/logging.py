"""A node's log lines: for a person on a terminal, JSON for everything else.

Always true: one event is one line on one stream, with the keys `event`, `level` and `timestamp` beside its own; the logger
belongs to the node it was made for, nothing is configured for the whole process.

structlog draws the lines of a terminal. The JSON lines have its shape and are written here, because importing structlog (with
rich, which it brings) takes longer than everything else a node does to start.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, TextIO

from strandline.escaping import escaped, escaped_text

if TYPE_CHECKING:
    from strandline.node.logger import Logger

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


def make_logger(stream: TextIO, level: str = "info", *, terminal: bool | None = None) -> Logger:
    """A logger with `bind`, `debug`, `info`, `warning`, `error` and `critical`, as structlog's have."""
    if stream.isatty() if terminal is None else terminal:
        return _console_logger(stream, LEVELS[level])
    return JsonLogger(_line_writer(stream), LEVELS[level])


class JsonLogger:
    __slots__ = ("_bound", "_threshold", "_write")

    def __init__(self, write: Callable[[str], None], threshold: int, bound: Mapping[str, object] | None = None) -> None:
        self._write = write
        self._threshold = threshold
        self._bound = dict(bound or {})

    def bind(self, **values: object) -> JsonLogger:
        """The same logger, with these values in every line."""
        return JsonLogger(self._write, self._threshold, self._bound | values)

    def debug(self, event: str, **values: object) -> None:
        self._log("debug", event, values)

    def info(self, event: str, **values: object) -> None:
        self._log("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        self._log("warning", event, values)

    def error(self, event: str, **values: object) -> None:
        self._log("error", event, values)

    def critical(self, event: str, **values: object) -> None:
        self._log("critical", event, values)

    def exception(self, event: str, **values: object) -> None:
        self._log("error", event, {"exc_info": True} | values)

    def _log(self, level: str, event: str, values: dict[str, object]) -> None:
        if LEVELS[level] < self._threshold:
            return
        line = {"event": event, "level": level, "timestamp": timestamp(), **self._bound, **values}
        if (raised := line.pop("exc_info", None)) is not None and raised is not False:
            line["exception"] = _traceback(raised)
        self._write(json.dumps(line, default=str))


def timestamp() -> str:
    """Now, in UTC, to the millisecond."""
    now_ms = time.time_ns() // 1_000_000
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now_ms // 1000))}.{now_ms % 1000:03d}Z"


def _traceback(raised: object) -> str:
    import sys
    import traceback

    error = raised if isinstance(raised, BaseException) else sys.exc_info()[1]
    return "" if error is None else "".join(traceback.format_exception(error)).rstrip()


def _line_writer(stream: TextIO) -> Callable[[str], None]:
    def write(line: str) -> None:
        stream.write(line + "\n")
        stream.flush()

    return write


def _escape_values(logger: object, method: str, line: MutableMapping[str, object]) -> Mapping[str, object]:
    """Text that clients wrote must not reach a terminal unescaped."""
    return {
        name: escaped_text(value) if isinstance(value, str) and name in ("exception", "stack") else _escaped(value)
        for name, value in line.items()
    }


def _escaped(value: object) -> object:
    return escaped(value) if isinstance(value, str) else value


def _console_logger(stream: TextIO, threshold: int) -> Logger:
    import structlog

    logger: Logger = structlog.wrap_logger(
        structlog.PrintLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S.%f", utc=False),
            _escape_values,
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        cache_logger_on_first_use=True,
    )
    return logger
