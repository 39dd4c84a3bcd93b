"""What a node shows of itself."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio

from strandline.node.broker_state import BrokerState

from .conftest import LISTENER, Looked, get


def looked_at(play, story, **settings):
    """A story with a node that is served at its metrics.listener."""

    async def with_monitoring(stage):
        async with Looked(stage) as looked:
            await story(stage, looked)

    play(with_monitoring, metrics_listener=LISTENER, **settings)


def test_nothing_listens_unless_it_is_asked_for(play):
    async def story(stage):
        async with Looked(stage) as looked:
            assert looked.server.port == 0

    play(story)


def test_events_after_a_number(play):
    async def story(stage, looked):
        start = looked.events.last
        looked.events.note("truncated", "because", topic="t", partition=0, offset=5)
        told = (await get(f"/events?since={start}")).json
        assert (told["node_id"], told["last"], told["incarnation_id"]) == (
            1,
            start + 1,
            str(looked.events.incarnation_id),
        )
        [event] = told["events"]
        assert event["sequence"] == start + 1
        assert (event["kind"], event["reason"], event["facts"]) == ("truncated", "because", {"offset": 5})
        assert (await get(f"/events?since={start + 1}")).json["events"] == []

    looked_at(play, story)


def test_who_waits_for_events_hears_of_the_next_one(play):
    async def story(stage, looked):
        loop, last = asyncio.get_running_loop(), looked.events.last
        asked = asyncio.create_task(get(f"/events?since={last}&wait_ms=20000"))
        await asyncio.sleep(3)
        assert not asked.done()
        looked.events.note("truncated", "because")
        assert len((await asked).json["events"]) == 1
        began = loop.time()
        assert (await get(f"/events?since={last + 1}&wait_ms=2000")).json["events"] == []
        assert 2 <= loop.time() - began < 2.5

    looked_at(play, story)


def test_a_query_that_is_none_is_refused(play):
    async def story(stage, looked):
        for query in ("since=-1", "since=x", "wait_ms=1e3", "since=" + "9" * 40):
            assert (await get(f"/events?{query}")).status == 400, query
        assert (await get("/replicas?partition=x")).status == 400

    looked_at(play, story)


def test_replicas_are_where_their_logs_are(play):
    async def story(stage, looked):
        partition = await stage.create("a")
        await stage.create("b")
        told = (await get("/replicas")).json
        assert [(one["topic"], one["partition"]) for one in told["replicas"]] == [("a", 0), ("b", 0)]
        [shown] = (await get("/replicas?topic=a&partition=0")).json["replicas"]
        assert shown["role"] == "leader"
        assert shown["topic_id"] == str(partition.topic_id)
        assert (shown["replicas"], shown["isr"], shown["maximal_isr"], shown["followers"]) == ([1], [1], [1], [])
        assert shown["log_end_offset"] == partition.log.log_end_offset
        assert shown["log_dir"] == "/data"
        assert (await get("/replicas?topic=none")).json["replicas"] == []

    looked_at(play, story)


def test_health_says_whether_the_node_does_what_it_is_for(play):
    async def story(stage, looked):
        reply = await get("/health")
        shown = reply.json
        assert reply.status == 200
        assert (shown["ok"], shown["controller"], shown["is_active_controller"]) == (True, 1, True)
        assert shown["roles"] == ["broker", "controller"]
        looked.node.broker_server.lifecycle._life.state = BrokerState.RECOVERY
        reply = await get("/health")
        assert (reply.status, reply.json["broker_state"]) == (503, "RECOVERY")

    looked_at(play, story)


def test_metrics_are_text_that_prometheus_reads(play):
    from prometheus_client.parser import text_string_to_metric_families

    async def story(stage, looked):
        await stage.create("a")
        reply = await get("/metrics")
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        families = {family.name: family for family in text_string_to_metric_families(reply.body.decode())}
        [leaders] = families["kafka_server_replicamanager_leadercount"].samples
        assert leaders.value == 1
        [end] = families["kafka_log_log_logendoffset"].samples
        assert end.labels == {"topic": "a", "partition": "0"}
        assert all(family.documentation for family in families.values())

    looked_at(play, story)


def test_a_node_whose_address_is_taken_goes_on_unseen(play):
    async def story(stage, looked):
        async with Looked(stage) as second:
            assert second.server.port == 0
        assert stage.logged("metrics can't be served") == 1
        assert (await get("/health")).status == 200

    looked_at(play, story)
