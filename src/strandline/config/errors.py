"""What is wrong with a configuration, in one sentence.

Always true: the sentence never contains the value of a sensitive key. It names the file and line, the environment name or the
override when there is one. A response to a client carries `message` with the code INVALID_CONFIG.
"""

from __future__ import annotations


class ConfigError(Exception):
    """A value, a key or a combination that cannot be used. `where` is empty for values that came over the wire."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where

    def at(self, where: str) -> ConfigError:
        """The same error, with its place."""
        return ConfigError(self.message, where)
