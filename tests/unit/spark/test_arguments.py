from __future__ import annotations

from pathlib import Path

import pytest

from strandline.spark.arguments import WrongArguments, read


def test_everything_is_handed_on() -> None:
    written = ["--master", "local[2]", "--name", "x", "-v", "--conf", "spark.a=b=c", "program.py", "--master", "mine"]
    arguments = read(written)
    assert arguments.handed_on == written
    assert arguments.config == {"spark.master": "local[2]", "spark.a": "b=c"}


def test_values_joined_to_their_names() -> None:
    assert read(["--master=yarn", "--conf=spark.a=1", "p.py"]).config == {"spark.master": "yarn", "spark.a": "1"}


def test_flags_by_their_settings() -> None:
    written = [
        "--archives",
        "a.zip",
        "--py-files",
        "b.zip",
        "--deploy-mode",
        "cluster",
        "--driver-java-options",
        "-Xss1m",
    ]
    assert read(written).config == {
        "spark.archives": "a.zip",
        "spark.submit.pyFiles": "b.zip",
        "spark.submit.deployMode": "cluster",
        "spark.driver.extraJavaOptions": "-Xss1m",
    }


def test_an_environment_is_one_of_the_archives() -> None:
    arguments = read(["--environment", "e.tar.gz", "--archives", "a.zip", "p.py", "1"])
    assert arguments.handed_on == ["--archives", "a.zip,e.tar.gz#environment", "p.py", "1"]
    assert arguments.config == {"spark.archives": "a.zip,e.tar.gz#environment"}
    assert read(["--environment=e.tar.gz"]).handed_on == ["--archives", "e.tar.gz#environment"]


def test_a_properties_file() -> None:
    assert read(["--properties-file", "p.conf", "p.py"]).properties_file == Path("p.conf")


def test_a_value_is_missing() -> None:
    with pytest.raises(WrongArguments, match="--master needs a value"):
        read(["--master"])


def test_nothing() -> None:
    assert read([]) == ({}, None, [])
