"""A client that asks about topics while nothing has changed: how long it waits, and what ends the wait."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio
from dataclasses import replace

from strandline.api import metadata
from strandline.api.cluster.metadata_updates import REST_S, SUSPECTED_WAIT_S, UNCHANGED_WAIT_S
from strandline.api.requests.pending_reply import PendingReply
from strandline.errors import ErrorCode
from strandline.sim.world import World
from strandline.wire import messages

from ..conftest import TestBroker, registration

Request = messages.request(3)


class Client:
    """One connection to a broker, in virtual time."""

    def __init__(self, broker, connection_id=1):
        self.broker = broker
        self.connection_id = connection_id

    async def ask(self, *names):
        """Seconds that it took, and the first topic of the answer; no names: all topics."""
        ctx = self.broker.context(3, 12)
        ctx.connection_id = self.connection_id
        began = ctx.loop.time()
        topics = [Request.MetadataRequestTopic(name=name) for name in names] or None
        reply = metadata.handle(Request(topics=topics, allow_auto_topic_creation=False), ctx)
        assert not isinstance(reply, PendingReply)
        body = reply if isinstance(reply, bytes) else await reply
        return round(ctx.loop.time() - began, 3), messages.decode_response(3, 12, body).topics[0]


def story(play):
    """Play it with a broker that has topic `t`, led by node 2."""
    with World(1) as world:
        node = world.node("n1")

        async def main():
            broker = TestBroker(node.disk, "/data")
            broker.commit([registration(2), registration(3)])
            broker.create("t", (2, 3))
            await asyncio.sleep(10)
            await play(broker, Client(broker))

        async def on_node():
            await node.spawn(main())

        world.run(on_node())


def later(delay_s, act):
    asyncio.get_running_loop().call_later(delay_s, act)


def test_an_answer_about_topics_waits_a_moment_on_each_connection():
    async def play(broker, client):
        assert (await client.ask("t"))[0] == UNCHANGED_WAIT_S
        assert (await Client(broker, 2).ask("t"))[0] == UNCHANGED_WAIT_S

    story(play)


def test_where_there_is_one_broker_nobody_waits():
    async def play(broker, client):
        broker.image = replace(broker.image, brokers={1: broker.image.brokers[1]})
        assert (await client.ask("t"))[0] == 0

    story(play)


def test_who_asks_for_everything_never_waits():
    async def play(broker, client):
        assert [(await client.ask())[0] for _ in range(3)] == [0, 0, 0]
        assert (await client.ask("t"))[0] == UNCHANGED_WAIT_S, "it was told everything already"

    story(play)


def test_after_one_that_waited_the_next_do_not_until_it_has_rested():
    async def play(broker, client):
        await client.ask("t")
        assert (await client.ask("t"))[0] == 0
        await asyncio.sleep(REST_S)
        assert (await client.ask("t"))[0] == UNCHANGED_WAIT_S

    story(play)


def test_news_leave_at_once():
    async def play(broker, client):
        await client.ask()
        broker.change(leader=3)
        took, topic = await client.ask("t")
        assert (took, topic.partitions[0].leader_id) == (0, 3)

    story(play)


def test_news_end_the_wait():
    async def play(broker, client):
        await client.ask()
        later(0.004, lambda: broker.change(leader=3))
        took, topic = await client.ask("t")
        assert (took, topic.partitions[0].leader_id) == (0.004, 3)

    story(play)


def test_news_about_others_do_not_end_the_wait():
    async def play(broker, client):
        await client.ask()
        later(0.004, lambda: broker.create("other"))
        assert (await client.ask("t"))[0] == UNCHANGED_WAIT_S

    story(play)


def test_a_suspected_leader_is_waited_for_longer_and_its_successor_is_told():
    async def play(broker, client):
        broker.suspects = frozenset({2})
        took, topic = await client.ask("t")
        assert (took, topic.partitions[0].error_code) == (0, ErrorCode.LEADER_NOT_AVAILABLE)
        later(0.2, lambda: broker.change(leader=3))
        took, topic = await client.ask("t")
        assert (took, topic.partitions[0].leader_id, topic.partitions[0].error_code) == (0.2, 3, 0)

    story(play)


def test_nobody_waits_longer_for_a_successor_than_an_election_takes():
    async def play(broker, client):
        broker.suspects = frozenset({2})
        await client.ask("t")
        assert (await client.ask("t"))[0] == SUSPECTED_WAIT_S

    story(play)


def test_a_suspicion_that_comes_meanwhile_is_news():
    async def play(broker, client):
        await client.ask()

        def suspect():
            broker.suspects = frozenset({2})
            broker.watch.changed()

        later(0.004, suspect)
        took, topic = await client.ask("t")
        assert (took, topic.partitions[0].error_code) == (0.004, ErrorCode.LEADER_NOT_AVAILABLE)

    story(play)


def test_a_connection_that_is_gone_is_forgotten():
    async def play(broker, client):
        await client.ask()
        broker.change(leader=3)
        broker.parts.connections.metadata_seen.forget(client.connection_id)
        broker.parts.connections.metadata_seen.forget(99)
        assert (await client.ask("t"))[0] == UNCHANGED_WAIT_S, "it is as one that was told nothing"

    story(play)
