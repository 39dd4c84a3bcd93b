"""docs/spark.md, as a reader follows it: its code runs, and prints what the page shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.spark.java import JavaMissing, find
from tests.system.local import up
from tests.system.spark.standalone import QUICK_JAVA
from tests.system.walkthrough import Block, blocks

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "spark.md"
WRITTEN_ADDRESS = "127.0.0.1:9092"
TIMEOUT_S = 400


@pytest.mark.system
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_the_walkthrough(tmp_path: Path) -> None:
    try:
        find()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    with up(tmp_path / "cluster", 1, 0) as cluster:
        page = tmp_path / "spark.md"
        page.write_text(PAGE.read_text().replace(WRITTEN_ADDRESS, cluster.bootstrap))
        environ = {
            **os.environ,
            # As with an activated environment for the commands; PySpark's workers must not need it.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "STRANDLINE_BOOTSTRAP_SERVER": cluster.bootstrap,
            "SPARK_SUBMIT_OPTS": QUICK_JAVA,
        }
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"):
            environ.pop(name, None)
        done = subprocess.run(
            [sys.executable, "-m", "tests.system.walkthrough", str(page), "Walkthrough"],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_the_page_has_all_that_it_promises() -> None:
    code = "".join(block.code for block in blocks(PAGE.read_text(), "Walkthrough"))
    for word in (".write.", "from_json", "withWatermark", "writeStream", "groups describe", "offsets_behind_latest"):
        assert word in code


def test_blocks_are_found_by_their_section() -> None:
    page = "## A\n```sh\nx\n```\n## B\n```python\n# ## A\ny\n```\n### b\n```text\nz\n```\n## C\n```sh\nw\n```\n"
    assert list(blocks(page, "B")) == [Block("python", 7, "# ## A\ny\n"), Block("text", 12, "z\n")]
