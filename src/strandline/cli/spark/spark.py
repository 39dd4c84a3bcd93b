"""`spark`: PySpark with topics as sources and sinks, on this machine or on any Spark cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from strandline.cli.errors import CommandRefused
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, json_option, note, print_json

if TYPE_CHECKING:
    from strandline.spark.packing import PackedArchive

PASS_THROUGH = {"ignore_unknown_options": True, "allow_interspersed_args": False}
HOW_TO_INSTALL = "pip install 'strandline[spark]'"
SUBMIT, SHELL = "spark-submit", "pyspark"


@click.group(
    epilog=example(
        "strandline spark shell",
        "strandline spark pack environment.tar.gz",
        "strandline spark submit --master spark://spark-master:7077 --environment environment.tar.gz pipeline.py",
    )
)
def spark() -> None:
    """Start PySpark so that format("strandline") works, and pack what a cluster needs for it."""


@spark.command(
    context_settings=PASS_THROUGH,
    epilog=example(
        "strandline spark shell", "strandline spark shell --master 'local[2]' --conf spark.ui.enabled=false"
    ),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYSPARK ARGUMENT]...")
def shell(arguments: tuple[str, ...]) -> None:
    """A Python prompt with a Spark session in `spark`.

    Takes every option of pyspark, and --environment FILE as `submit` does; `strandline spark shell -- --help` lists them.
    """
    _run(SHELL, arguments)


@spark.command(
    context_settings=PASS_THROUGH,
    epilog=example(
        "strandline spark submit pipeline.py",
        "strandline spark submit --master spark://spark-master:7077 --environment environment.tar.gz pipeline.py",
    ),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SPARK-SUBMIT ARGUMENT]... FILE [ARGUMENT]...")
def submit(arguments: tuple[str, ...]) -> None:
    """Run a program on Spark; the exit code is that of spark-submit.

    Takes every option of spark-submit (`strandline spark submit -- --help` lists them) and one more: --environment FILE ships
    an archive of `strandline spark pack` to executors without Python packages. It is the same as --archives FILE#environment.
    """
    if not arguments:
        raise click.UsageError("name the program to run, such as pipeline.py")
    _run(SUBMIT, arguments)


@spark.command(
    epilog=example(
        "strandline spark pack environment.tar.gz",
        "strandline spark pack environment.tar.gz --python /usr/bin/python3.11",
        "strandline spark pack --pure strandline.zip",
    )
)
@click.argument("out", required=False, type=click.Path(dir_okay=False, path_type=Path), metavar="[OUT.tar.gz]")
@click.option(
    "--pure", "pure_out", type=click.Path(dir_okay=False, path_type=Path), metavar="OUT.zip",
    help="Only the pure Python packages, for --py-files, where the native ones are installed.",
)  # fmt: skip
@click.option("--python", metavar="PATH", help="Use the executors' Python at this path instead of packing this one.")
@click.option("--with-pyspark", is_flag=True, help="Also pack PySpark, which a Spark cluster already has.")
@json_option
def pack(out: Path | None, pure_out: Path | None, python: str | None, with_pyspark: bool, as_json: bool) -> None:
    """Pack Python, Strandline and its dependencies, for executors that have neither these nor a network.

    The archive runs on machines with the same system and processor architecture as this one. On another processor model each
    executor compiles a few loops once, which takes seconds.
    """
    from strandline.cli.spark.pack_progress import display

    if out is None and pure_out is None:
        raise click.UsageError("name the file to write: OUT.tar.gz, or --pure OUT.zip, or both")
    if out is not None and not out.name.endswith((".tar.gz", ".tgz")):
        raise click.UsageError(f"Spark unpacks an archive by its name: {out} must end in .tar.gz")
    if pure_out is not None and pure_out.suffix != ".zip":
        raise click.UsageError(f"Spark puts a file on the executors' path by its name: {pure_out} must end in .zip")
    _check_installed("numba", "pyarrow")
    from strandline.spark import packing
    from strandline.spark.package_closure import Unpackable

    made: list[PackedArchive] = []
    try:
        with display() as progress:
            if out is not None:
                made.append(packing.pack(out, python=python, with_pyspark=with_pyspark, progress=progress))
            if pure_out is not None:
                made.append(packing.pack_pure(pure_out, progress))
    except Unpackable as error:
        raise CommandRefused(str(error)) from None
    if as_json:
        print_json([_as_json(packed) for packed in made])
        return
    for packed in made:
        echo(f"{packed.path}: {len(packed.packages)} packages, {packed.size_bytes / 1e6:.0f} MB")
        note(f"next: {_next(packed)}")


def _run(program: str, written: tuple[str, ...]) -> NoReturn:
    """Replace this process by Spark's own script, with the settings and environment that it needs."""
    _check_installed("pyspark", "pyarrow")
    from strandline.columnar.warming import compile_once
    from strandline.spark import arguments, java, launching

    try:
        java.find()
        read = arguments.read(written)
    except java.JavaMissing as error:
        raise CommandRefused(str(error)) from None
    except arguments.WrongArguments as error:
        raise click.UsageError(str(error)) from None
    home = launching.spark_home(os.environ)
    script = home / "bin" / program
    if not os.access(script, os.X_OK):
        raise CommandRefused(
            f"there is no {script}; set SPARK_HOME to a Spark installation, or unset it to use that of the PySpark package"
        )
    defaults = launching.defaults_of(read.properties_file or launching.defaults_file(os.environ))
    config = {launching.MASTER: os.environ.get("MASTER", "local[*]")} | defaults | read.config
    launch = launching.prepare(config, os.environ)
    if launching.local_cores(config[launching.MASTER]) is not None:
        compile_once(note)
    settings = [part for name, value in launch.config.items() for part in ("--conf", f"{name}={value}")]
    environ = os.environ | launch.environ | {"SPARK_HOME": str(home)}
    sys.stdout.flush()
    os.execve(script, [str(script), *settings, *read.handed_on], environ)


def _check_installed(*modules: str) -> None:
    missing = [module for module in modules if not _is_installed(module)]
    if missing:
        raise CommandRefused(f"not installed: {', '.join(missing)}; {HOW_TO_INSTALL}")


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def _next(packed: PackedArchive) -> str:
    if packed.path.suffix != ".zip":
        return f"strandline spark submit --master spark://HOST:7077 --environment {packed.path} PROGRAM.py"
    native = " ".join(f"{package.name}=={package.version}" for package in packed.native_left_out)
    return (
        f"strandline spark submit --master spark://HOST:7077 --py-files {packed.path} PROGRAM.py; "
        f"each executor's python3 must have {native}"
    )


def _as_json(packed: PackedArchive) -> dict[str, object]:
    return {
        "path": str(packed.path),
        "size_bytes": packed.size_bytes,
        "packages": {package.name: package.version for package in packed.packages},
        "executors_need": {package.name: package.version for package in packed.native_left_out},
    }
