"""What limits count, as somebody who looks sees it."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from .conftest import LISTENER, get
from .test_metrics import samples


def test_every_limit_has_its_count(play):
    async def story(stage):
        end = stage.connect()
        over = stage.connect()
        assert over.closed
        node = stage.node
        assert (await get("http://evil.example/health")).status == 421
        node.parts.resources.stalled_requests = 3
        node.parts.resources.turns.ended_early = 7
        found = samples(node.parts.monitoring._load_metrics())
        assert found["strandline_connections", "listener=PLAINTEXT"] == 1
        assert found["strandline_connections", "listener=CONTROLLER"] == 1, "its own broker"
        assert found["strandline_connections_refused_total", "limit=max.connections"] == 1
        assert found["strandline_connections_stalled_total", "what=request"] == 3
        assert found["strandline_connections_stalled_total", "what=replies"] == 0
        assert found["strandline_turns_ended_early_total",] == 7
        assert found["strandline_http_refused_total",] == 1
        assert found["strandline_request_bytes_held",] == found["strandline_reply_bytes_held",] == 0
        assert found["strandline_connections_max",] > 0
        end.feed(b"\x00\x10\x00\x00" + bytes(100_000))
        assert samples(node.parts.monitoring._load_metrics())["strandline_request_bytes_held",] > 100_000

    play(story, max_connections="1", metrics_listener=LISTENER)
