"""The arguments of spark-submit and pyspark, as far as starting them well depends on them.

Always true: what is not ours is handed on as it was written; everything after the program's file belongs to the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from strandline.spark import launching

ENVIRONMENT = "--environment"
SWITCHES = frozenset(("--help", "-h", "--verbose", "-v", "--version", "--supervise"))
"""Those of spark-submit that take no value."""
_SETTINGS = {
    "--master": launching.MASTER,
    "--archives": launching.ARCHIVES,
    "--py-files": launching.PY_FILES,
    "--deploy-mode": launching.DEPLOY_MODE,
    "--driver-java-options": launching.DRIVER_JAVA_OPTIONS,
}


class SubmitArguments(NamedTuple):
    config: dict[str, str]
    """What they configure, by Spark's names."""
    properties_file: Path | None
    handed_on: list[str]


class WrongArguments(ValueError):
    """One line says what is missing."""


def read(written: Sequence[str]) -> SubmitArguments:
    config: dict[str, str] = {}
    properties_file = None
    environment = None
    handed_on: list[str] = []
    waiting = list(written)
    while waiting and waiting[0].startswith("-") and waiting[0] != "-":
        name, is_joined, value = waiting.pop(0).partition("=")
        if name in SWITCHES:
            handed_on.append(name)
            continue
        if not is_joined:
            if not waiting:
                raise WrongArguments(f"{name} needs a value")
            value = waiting.pop(0)
        if name == ENVIRONMENT:
            environment = value
            continue
        if name in ("--conf", "-c"):
            key, _, setting = value.partition("=")
            config[key.strip()] = setting.strip()
        elif name in _SETTINGS:
            config[_SETTINGS[name]] = value
        elif name == "--properties-file":
            properties_file = Path(value)
        if name != "--archives":
            handed_on += [name, value]
    if environment is not None:
        archives = [config[launching.ARCHIVES]] if launching.ARCHIVES in config else []
        config[launching.ARCHIVES] = ",".join([*archives, launching.named_archive(environment)])
    if launching.ARCHIVES in config:
        handed_on += ["--archives", config[launching.ARCHIVES]]
    return SubmitArguments(config, properties_file, handed_on + waiting)
