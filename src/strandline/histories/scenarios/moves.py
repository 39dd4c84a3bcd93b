"""Replicas that move, topics that are deleted and made again, and everything at once, under load."""

from __future__ import annotations

import asyncio

from strandline.client.aio import Admin, Producer, ProducerConfig
from strandline.client.flow.described import ElectionType, NewTopic
from strandline.errors import KafkaError
from strandline.histories.record_load import KEYS
from strandline.histories.record_story import APART, FIVE, THREE, RecordStory, replicated

FIVE_BROKERS = APART.__class__(voters=1, brokers=5)


async def reassign(story: RecordStory) -> None:
    """Each partition to three brokers of any."""
    targets = {key: story.chance.sample(story.brokers, 3) for key in KEYS}

    async def ask(admin: Admin) -> None:
        try:
            await admin.alter_partition_reassignments(targets, timeout_ms=3_000)
        except KafkaError:
            return

    story.transcript.note("operator", f"moves {targets}")
    await story.load.operate(ask)


async def moved(story: RecordStory) -> None:
    await story.cluster.until(
        lambda: all(
            not story.state(n).adding_replicas and not story.state(n).removing_replicas for n in range(len(KEYS))
        ),
        "reassignments end",
        45.0,
    )


@replicated("reassignments", (FIVE_BROKERS, FIVE))
async def reassignments(story: RecordStory) -> None:
    """Partitions move from broker to broker."""
    await story.begin()
    for _ in range(3):
        await reassign(story)
        await moved(story)
        await story.written(5)


@replicated("reassignments and kills", (FIVE_BROKERS, FIVE))
async def reassignments_and_kills(story: RecordStory) -> None:
    """Partitions move while the brokers that they come from and go to die."""
    await story.begin()
    for _ in range(3):
        await reassign(story)
        await story.wait(0.0, 0.3)
        victim = story.chance.choice(story.brokers)
        story.chance.choice((story.cluster.kill, story.cluster.power_loss))(victim)
        await story.wait(0.0, 2.5)
        story.cluster.start(victim)
        await story.wait(0.0, 0.5)
    await moved(story)


@replicated("elections on request", (THREE, APART))
async def elections_on_request(story: RecordStory) -> None:
    """An operator has the preferred leaders elected again and again, while brokers die."""
    await story.begin()

    async def elect(admin: Admin) -> None:
        try:
            await admin.elect_leaders(ElectionType.PREFERRED, timeout_ms=3_000)
        except KafkaError:
            return

    for _ in range(3):
        victim = story.chance.choice(story.brokers)
        story.cluster.kill(victim)
        await story.wait(0.0, 1.5)
        story.cluster.start(victim)
        await story.wait(0.0, 1.5)
        await story.load.operate(elect)


@replicated("topics come and go", (THREE, APART))
async def topics_come_and_go(story: RecordStory) -> None:
    """Beside the load a topic is made, written to, deleted and made again, while brokers die."""
    await story.begin()

    async def come_and_go(admin: Admin) -> None:
        for number in range(4):
            try:
                await admin.create_topics(
                    [NewTopic("fleeting", 2, 3, configs={"flush.messages": "1"})], timeout_ms=3_000
                )
                async with Producer(
                    admin._client, ProducerConfig(linger_ms=0, delivery_timeout_ms=1_000, request_timeout_ms=900)
                ) as producer:
                    sent = [producer.send("fleeting", b"%d-%d" % (number, n)) for n in range(10)]
                    for delivery in sent:
                        await delivery
            except KafkaError:
                pass
            try:
                await admin.delete_topics(["fleeting"], timeout_ms=3_000)
            except KafkaError:
                pass

    going = asyncio.ensure_future(story.load.operate(come_and_go))
    for _ in range(3):
        victim = story.chance.choice(story.brokers)
        story.chance.choice((story.cluster.kill, story.cluster.power_loss))(victim)
        await story.wait(0.1, 1.5)
        story.cluster.start(victim)
        await story.wait(0.0, 1.5)
    story.cluster.start()
    await going


@replicated("everything at once", (THREE, APART, FIVE))
async def everything(story: RecordStory) -> None:
    """Kills, stops, pauses, cuts, resets and slow disks, in any order."""
    await story.begin()
    chance, cluster = story.chance, story.cluster
    nodes = list(cluster.members)
    for _ in range(10):
        kind = chance.choice(("kill", "kill", "stop", "pause", "cut", "one way", "reset", "slow disk", "start", "heal"))
        one, other = chance.sample(nodes, 2)
        if kind == "kill":
            cluster.kill(one)
        elif kind == "stop" and cluster.members[one].is_started and len(cluster.up) > len(nodes) // 2 + 1:
            cluster.resume(one)
            cluster.heal_network()
            await cluster.stop(one)
        elif kind == "pause" and cluster.members[one].is_up:
            cluster.pause(one)
        elif kind == "cut":
            cluster.cut(one, other)
        elif kind == "one way":
            cluster.cut_one_way(one, other)
        elif kind == "reset":
            cluster.reset(f"n{one}", f"n{other}")
        elif kind == "slow disk":
            cluster.slow_disk(one, 30)
        elif kind == "start":
            cluster.start()
        elif kind == "heal":
            cluster.heal()
        await story.wait(0.0, 1.2)
