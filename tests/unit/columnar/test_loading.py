"""A process that cannot compile reads and writes all the same."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_NUMBA = """
import sys, warnings
sys.modules["numba"] = sys.modules["llvmlite"] = None
import numpy as np, pyarrow as pa
from strandline.columnar.decoding import Decoder
from strandline.columnar.encoding import Encoder, Rows, partitions_of
from strandline.columnar.warming import compile_once
from strandline.records.compression import CompressionType
from strandline.records.ready import stamp
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    compile_once(print)
    rows = Rows(pa.array(["a", None]), pa.array([b"1", b"2"]), None, np.array([5, 6]))
    assert partitions_of(rows.key, 5).tolist() == [4, -1]
    (batch,) = Encoder(compression=CompressionType.ZSTD, level=None, batch_bytes_max=1000).encode(rows, None)
    stamp(batch, -1, -1, -1)
    (found,) = Decoder("t", 0, ("key", "value", "offset")).decode(batch.data, 0, 10, None)
print(found.to_pylist())
print([str(each.message) for each in caught])
"""


def test_the_plain_way_works_and_says_why_it_is_taken() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows, warned = done.stdout.splitlines()
    assert rows == "[{'key': b'a', 'value': b'1', 'offset': 0}, {'key': None, 'value': b'2', 'offset': 1}]"
    assert warned.count("numba is not installed") == 1
