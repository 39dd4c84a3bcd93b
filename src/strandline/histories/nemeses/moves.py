"""Replicas that move, leaders by request, topics that are deleted and made again, and everything at once, under
load."""

from __future__ import annotations

import asyncio

from strandline.client.aio import Admin, Producer, ProducerConfig
from strandline.client.flow.descriptions import ElectionType, NewTopic
from strandline.errors import KafkaError
from strandline.histories.nemeses.context import OPERATION_MS, NemesisContext
from strandline.histories.nemeses.nemesis import movable, nemesis, replicated
from strandline.histories.shape import host

FLEETING, TRIMMED = "fleeting", "trimmed"
MOVED_WITHIN_S = 45.0


async def _reassign(context: NemesisContext) -> None:
    """Each partition to as many brokers of any as it has replicas now, in any order."""
    targets = {}
    for number, key in enumerate(context.convergence.names):
        brokers = context.chance.sample(context.brokers, len(context.state(number).replicas))
        if context.faults.inject("reassignment", f"{key} to {brokers}", lambda: None):
            targets[key] = brokers
    await context.operate(lambda admin: admin.alter_partition_reassignments(targets, timeout_ms=OPERATION_MS))


async def _moved(context: NemesisContext) -> None:
    states = range(context.partitions)
    await context.until(
        lambda: all(not context.state(n).adding_replicas and not context.state(n).removing_replicas for n in states),
        MOVED_WITHIN_S,
    )


@nemesis("reassignments", movable)
async def reassignments(context: NemesisContext) -> None:
    """Partitions move from broker to broker."""
    for _ in range(2):
        await _reassign(context)
        await _moved(context)
        await context.written()


@nemesis("reassignments and kills", movable)
async def reassignments_and_kills(context: NemesisContext) -> None:
    """Partitions move while the brokers that they come from and go to die."""
    for _ in range(2):
        await _reassign(context)
        await context.wait(0.0, 0.3)
        victim = context.chance.choice(context.brokers)
        context.faults.dies(victim, power=context.either())
        await context.wait(0.0, 2.5)
        context.start(victim)
        await context.wait(0.0, 0.5)
    await _moved(context)


@nemesis("elections on request", replicated, weight=2)
async def elections_on_request(context: NemesisContext) -> None:
    """An operator has the preferred leaders elected again, while brokers die."""
    for _ in range(2):
        victim = context.chance.choice(context.brokers)
        context.faults.kill(victim)
        await context.wait(0.0, 1.5)
        context.start(victim)
        await context.wait(0.0, 1.5)
        if context.faults.inject("election on request", "preferred", lambda: None):
            await context.operate(lambda admin: admin.elect_leaders(ElectionType.PREFERRED, timeout_ms=OPERATION_MS))


@nemesis("topics come and go")
async def topics_come_and_go(context: NemesisContext) -> None:
    """Beside the load a topic is made, written to, cut at its beginning, deleted and made again, while nodes die."""
    going = asyncio.ensure_future(_come_and_go(context, context.chance.choice((2, 3))))
    for _ in range(2):
        victim = context.chance.choice(context.brokers)
        power = context.either()
        await context.wait(0.1, 1.5)
        context.faults.dies(victim, power=power)
        await context.wait(0.1, 1.5)
        context.start(victim)
    await going


async def _come_and_go(context: NemesisContext, times: int) -> None:
    replicas = context.setting.replicas

    async def come_and_go(admin: Admin) -> None:
        for number in range(times):
            topic = NewTopic(FLEETING, 2, replicas, configs={"flush.messages": "1"})
            await _tolerant(context, admin.create_topics([topic], timeout_ms=OPERATION_MS))
            offsets = await write(context, admin, FLEETING, number)
            if offsets and context.chance.random() < 0.5:
                await _tolerant(context, admin.delete_records({(FLEETING, 0): max(offsets)}, timeout_ms=OPERATION_MS))
            if context.faults.inject("topic deleted", FLEETING, lambda: None):
                await _tolerant(context, admin.delete_topics([FLEETING], timeout_ms=OPERATION_MS))

    await context.operate(come_and_go)


async def write(context: NemesisContext, admin: Admin, topic: str, number: int = 0) -> list[int]:
    """Ten records; the offsets of those that were acknowledged."""
    config = ProducerConfig(linger_ms=0, delivery_timeout_ms=3_000, request_timeout_ms=2_500)
    offsets: list[int] = []
    async with Producer(admin._client, config, allow_auto_topic_creation=False) as producer:
        for delivery in [producer.send(topic, b"%d-%d" % (number, n), partition=0) for n in range(10)]:
            context.load.operations += 1
            try:
                offsets.append((await delivery).offset)
            except KafkaError as error:
                context.load.note_error(error)
    return offsets


async def _tolerant(context: NemesisContext, work: object) -> None:
    context.load.operations += 1
    try:
        await work  # type: ignore[misc]
    except KafkaError as error:
        context.load.note_error(error)


@nemesis("a follower behind the log start", replicated, weight=2)
async def behind_the_log_start(context: NemesisContext) -> None:
    """While a follower is away, records are deleted beyond its end: it begins anew where its leader's log does (A8)."""
    configs = {"min.insync.replicas": "2", "internal.segment.bytes": "2048"}
    topic = NewTopic(TRIMMED, 1, context.setting.replicas, configs=configs)
    await context.operate(lambda admin: admin.create_topics([topic], timeout_ms=OPERATION_MS))
    await context.until(lambda: TRIMMED in context.replicas.image.topics, 5.0)
    await context.operate(lambda admin: write(context, admin, TRIMMED, 1))
    known = context.replicas.image.topics.get(TRIMMED)
    if known is None:
        return
    state = known.partitions[0]
    victim = context.chance.choice(context.others(state.replicas, state.leader))
    context.faults.kill(victim)

    (other, *_) = context.others(state.replicas, state.leader, victim)
    order = [other, *context.others(state.replicas, other)]

    async def write_and_trim(admin: Admin) -> None:
        await write(context, admin, TRIMMED, 2)
        # In another epoch: what the follower knows last is nothing that the leader's log goes back to.
        await admin.alter_partition_reassignments({(TRIMMED, 0): order}, timeout_ms=OPERATION_MS)
        await admin.elect_leaders(ElectionType.PREFERRED, [(TRIMMED, 0)], timeout_ms=OPERATION_MS)
        offsets = await write(context, admin, TRIMMED, 3)
        if offsets:
            await admin.delete_records({(TRIMMED, 0): max(offsets)}, timeout_ms=OPERATION_MS)

    await context.operate(write_and_trim)
    context.start(victim)
    await context.whole()
    if context.faults.inject("topic deleted", TRIMMED, lambda: None):
        await context.operate(lambda admin: admin.delete_topics([TRIMMED], timeout_ms=OPERATION_MS))


@nemesis("records deleted, and a crash", lambda setting: True, weight=2)
async def deleted_and_crash(context: NemesisContext) -> None:
    """Records are deleted, by request and by retention, through several leader epochs, and a replica dies at that
    very moment: its log begins where it should, and every epoch of it ends where it did (A7)."""
    configs = {"internal.segment.bytes": "1024", "retention.bytes": "3000", "file.delete.delay.ms": "100"}
    topic = NewTopic(TRIMMED, 1, context.setting.replicas, configs={**configs, "flush.messages": "1"})
    await context.operate(lambda admin: admin.create_topics([topic], timeout_ms=OPERATION_MS))
    await context.until(lambda: TRIMMED in context.replicas.image.topics, 5.0)
    for number in range(3):
        known = context.replicas.image.topics.get(TRIMMED)
        if known is None:
            return
        state = known.partitions[0]
        victim = context.chance.choice((max(state.leader, 1), *state.replicas))

        async def write_and_trim(admin: Admin, number: int = number) -> None:
            offsets = await write(context, admin, TRIMMED, number)
            if offsets and context.faults.inject("records deleted", f"{TRIMMED} before {max(offsets)}", lambda: None):
                at = context.chance.choice((max(offsets), min(offsets) + len(offsets) // 2))
                await admin.delete_records({(TRIMMED, 0): at}, timeout_ms=OPERATION_MS)

        await context.operate(write_and_trim)
        await context.wait(0.0, context.chance.choice((0.0, 0.3)))
        context.faults.dies(victim, power=context.either())
        await context.wait(0.0, 0.4)
        context.start(victim)
        await context.wait(0.3, 1.5)
    await context.whole()
    if context.faults.inject("topic deleted", TRIMMED, lambda: None):
        await context.operate(lambda admin: admin.delete_topics([TRIMMED], timeout_ms=OPERATION_MS))


@nemesis("configs of the load change", replicated)
async def configs_change(context: NemesisContext) -> None:
    """Segments, flushes and indexes of the topics change their size while a leader dies."""
    for _ in range(2):
        topic = context.chance.choice(context.setting.topics).name
        size = context.chance.choice(("2048", "16384"))
        await context.alter_topic(topic, "internal.segment.bytes", size)
        await context.alter_topic(topic, "index.interval.bytes", context.chance.choice(("256", "4096")))
        leader = context.leader()
        context.faults.kill(leader)
        await context.wait(0.1, 1.0)
        context.start(leader)
        await context.written()


@nemesis("everything at once", replicated)
async def everything(context: NemesisContext) -> None:
    """Kills, stops, pauses, cuts, resets and slow disks, in any order."""
    chance, cluster, faults = context.chance, context.cluster, context.faults
    for _ in range(8):
        kind = chance.choice(("kill", "kill", "stop", "pause", "cut", "one way", "reset", "slow disk", "start", "heal"))
        one, other = chance.sample(context.nodes, 2)
        if kind == "kill":
            faults.kill(one)
        elif kind == "stop" and cluster.members[one].is_started and len(cluster.up) > len(context.nodes) // 2 + 1:
            cluster.resume(one)
            context.heal_network()
            await faults.stop(one)
        elif kind == "pause":
            faults.pause(one)
        elif kind == "cut":
            faults.cut(one, other)
        elif kind == "one way":
            faults.cut_one_way(one, other)
        elif kind == "reset":
            faults.reset(host(one), host(other))
        elif kind == "slow disk":
            faults.slow_disk(one, 30)
        elif kind == "start":
            context.start()
        elif kind == "heal":
            cluster.heal()
        await context.wait(0.0, 1.5)
