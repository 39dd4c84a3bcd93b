"""What the parts of a node log to: structlog's methods, which `runtime/logging.py` has too. Each node has a logger of its own."""

from __future__ import annotations

from typing import Protocol


class Logger(Protocol):
    """One event is one line; `values` are its keys."""

    def bind(self, **values: object) -> Logger:
        """The same logger, with these values in every line."""

    def debug(self, event: str, **values: object) -> None: ...

    def info(self, event: str, **values: object) -> None: ...

    def warning(self, event: str, **values: object) -> None: ...

    def error(self, event: str, **values: object) -> None: ...

    def critical(self, event: str, **values: object) -> None: ...

    def exception(self, event: str, **values: object) -> None: ...
