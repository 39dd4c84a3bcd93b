"""A bit rots on the disk of a replica: nobody is served what it made of the record, and another replica heals it."""

from __future__ import annotations

from pathlib import Path

from strandline.node.scrubber import PAUSE_S
from tests.system.copies import events, segments
from tests.system.load import all_in_sync, leaders, make_topic
from tests.system.local import strandline, up
from tests.system.server import eventually

ROTTEN, OTHERS = 1, [2, 3]
READ_TIMEOUT_S = 20
assert READ_TIMEOUT_S < PAUSE_S
RECORDS = [f"record {number:06} {'x' * 80}" for number in range(20_000)]


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def test_a_rotten_batch_is_found_by_its_checksum_and_fetched_from_a_peer(tmp_path: Path) -> None:
    with up(tmp_path / "cluster", 3) as cluster:
        topic = make_topic(cluster, "rot", [[ROTTEN, *OTHERS]], segment_bytes="1048576")
        strandline("produce", topic, *cluster.server, stdin="\n".join(RECORDS) + "\n")
        all_in_sync(cluster, topic)
        closed = segments(cluster, ROTTEN, topic)[0]
        sound = closed.read_bytes()
        cluster.stop(ROTTEN)
        flip_a_bit(closed)
        cluster.restart(ROTTEN)
        all_in_sync(cluster, topic)
        strandline("elect", f"{topic}-0", *cluster.server)
        eventually(lambda: leaders(cluster.bootstrap, topic) == [ROTTEN], "the rotten replica leads", 30)
        # The reader's own Fetch must have it healed: the scrubber would find it too, but looks only after a minute.
        waits = ("--timeout", str(READ_TIMEOUT_S))
        consume = ("consume", topic, "--from-beginning", "--max-messages", str(len(RECORDS)), *waits)
        assert strandline(*consume, *cluster.server).splitlines() == RECORDS
        eventually(lambda: closed.read_bytes() == sound, "the segment is as it was", 30)
        kinds = [event["kind"] for event in events(cluster, topic)]
        assert ("corrupt batch" in kinds, "batch repaired" in kinds) == (True, True)
