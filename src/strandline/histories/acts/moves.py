"""Replicas that move, leaders by request, topics that are deleted and made again, and everything at once, under load."""

from __future__ import annotations

import asyncio

from strandline.client.aio import Admin, Producer, ProducerConfig
from strandline.client.flow.described import ElectionType, NewTopic
from strandline.errors import KafkaError
from strandline.histories.acts.act import act, movable, replicated
from strandline.histories.acts.scene import OPERATION_MS, Scene
from strandline.histories.shape import host

FLEETING, TRIMMED = "fleeting", "trimmed"
MOVED_WITHIN_S = 45.0


async def _reassign(scene: Scene) -> None:
    """Each partition to as many brokers of any as it has replicas now, in any order."""
    targets = {}
    for number, key in enumerate(scene.convergence.names):
        brokers = scene.chance.sample(scene.brokers, len(scene.state(number).replicas))
        if scene.faults.inject("reassignment", f"{key} to {brokers}", lambda: None):
            targets[key] = brokers
    await scene.operate(lambda admin: admin.alter_partition_reassignments(targets, timeout_ms=OPERATION_MS))


async def _moved(scene: Scene) -> None:
    states = range(scene.partitions)
    await scene.until(
        lambda: all(not scene.state(n).adding_replicas and not scene.state(n).removing_replicas for n in states),
        MOVED_WITHIN_S,
    )


@act("reassignments", movable)
async def reassignments(scene: Scene) -> None:
    """Partitions move from broker to broker."""
    for _ in range(2):
        await _reassign(scene)
        await _moved(scene)
        await scene.written()


@act("reassignments and kills", movable)
async def reassignments_and_kills(scene: Scene) -> None:
    """Partitions move while the brokers that they come from and go to die."""
    for _ in range(2):
        await _reassign(scene)
        await scene.wait(0.0, 0.3)
        victim = scene.chance.choice(scene.brokers)
        scene.faults.dies(victim, power=scene.either())
        await scene.wait(0.0, 2.5)
        scene.start(victim)
        await scene.wait(0.0, 0.5)
    await _moved(scene)


@act("elections on request", replicated, weight=2)
async def elections_on_request(scene: Scene) -> None:
    """An operator has the preferred leaders elected again, while brokers die."""
    for _ in range(2):
        victim = scene.chance.choice(scene.brokers)
        scene.faults.kill(victim)
        await scene.wait(0.0, 1.5)
        scene.start(victim)
        await scene.wait(0.0, 1.5)
        if scene.faults.inject("election on request", "preferred", lambda: None):
            await scene.operate(lambda admin: admin.elect_leaders(ElectionType.PREFERRED, timeout_ms=OPERATION_MS))


@act("topics come and go")
async def topics_come_and_go(scene: Scene) -> None:
    """Beside the load a topic is made, written to, cut at its beginning, deleted and made again, while nodes die."""
    going = asyncio.ensure_future(_come_and_go(scene, scene.chance.choice((2, 3))))
    for _ in range(2):
        victim = scene.chance.choice(scene.brokers)
        power = scene.either()
        await scene.wait(0.1, 1.5)
        scene.faults.dies(victim, power=power)
        await scene.wait(0.1, 1.5)
        scene.start(victim)
    await going


async def _come_and_go(scene: Scene, times: int) -> None:
    replicas = scene.setting.replicas

    async def come_and_go(admin: Admin) -> None:
        for number in range(times):
            topic = NewTopic(FLEETING, 2, replicas, configs={"flush.messages": "1"})
            await _tolerant(scene, admin.create_topics([topic], timeout_ms=OPERATION_MS))
            offsets = await write(scene, admin, FLEETING, number)
            if offsets and scene.chance.random() < 0.5:
                await _tolerant(scene, admin.delete_records({(FLEETING, 0): max(offsets)}, timeout_ms=OPERATION_MS))
            if scene.faults.inject("topic deleted", FLEETING, lambda: None):
                await _tolerant(scene, admin.delete_topics([FLEETING], timeout_ms=OPERATION_MS))

    await scene.operate(come_and_go)


async def write(scene: Scene, admin: Admin, topic: str, number: int = 0) -> list[int]:
    """Ten records; the offsets of those that were acknowledged."""
    config = ProducerConfig(linger_ms=0, delivery_timeout_ms=3_000, request_timeout_ms=2_500)
    offsets: list[int] = []
    async with Producer(admin._client, config, allow_auto_topic_creation=False) as producer:
        for delivery in [producer.send(topic, b"%d-%d" % (number, n), partition=0) for n in range(10)]:
            scene.load.operations += 1
            try:
                offsets.append((await delivery).offset)
            except KafkaError as error:
                scene.load.note_error(error)
    return offsets


async def _tolerant(scene: Scene, work: object) -> None:
    scene.load.operations += 1
    try:
        await work  # type: ignore[misc]
    except KafkaError as error:
        scene.load.note_error(error)


@act("a follower behind the log start", replicated, weight=2)
async def behind_the_log_start(scene: Scene) -> None:
    """While a follower is away, records are deleted beyond its end: it begins anew where its leader's log does (A8)."""
    configs = {"min.insync.replicas": "2", "internal.segment.bytes": "2048"}
    topic = NewTopic(TRIMMED, 1, scene.setting.replicas, configs=configs)
    await scene.operate(lambda admin: admin.create_topics([topic], timeout_ms=OPERATION_MS))
    await scene.until(lambda: TRIMMED in scene.replicas.image.topics, 5.0)
    await scene.operate(lambda admin: write(scene, admin, TRIMMED, 1))
    known = scene.replicas.image.topics.get(TRIMMED)
    if known is None:
        return
    state = known.partitions[0]
    victim = scene.chance.choice(scene.others(state.replicas, state.leader))
    scene.faults.kill(victim)

    (other, *_) = scene.others(state.replicas, state.leader, victim)
    order = [other, *scene.others(state.replicas, other)]

    async def write_and_trim(admin: Admin) -> None:
        await write(scene, admin, TRIMMED, 2)
        # In another epoch: what the follower knows last is nothing that the leader's log goes back to.
        await admin.alter_partition_reassignments({(TRIMMED, 0): order}, timeout_ms=OPERATION_MS)
        await admin.elect_leaders(ElectionType.PREFERRED, [(TRIMMED, 0)], timeout_ms=OPERATION_MS)
        offsets = await write(scene, admin, TRIMMED, 3)
        if offsets:
            await admin.delete_records({(TRIMMED, 0): max(offsets)}, timeout_ms=OPERATION_MS)

    await scene.operate(write_and_trim)
    scene.start(victim)
    await scene.whole()
    if scene.faults.inject("topic deleted", TRIMMED, lambda: None):
        await scene.operate(lambda admin: admin.delete_topics([TRIMMED], timeout_ms=OPERATION_MS))


@act("records deleted, and a crash", lambda setting: True, weight=2)
async def deleted_and_crash(scene: Scene) -> None:
    """Records are deleted, by request and by retention, through several leader epochs, and a replica dies at that very moment: its
    log begins where it should, and every epoch of it ends where it did (A7)."""
    configs = {"internal.segment.bytes": "1024", "retention.bytes": "3000", "file.delete.delay.ms": "100"}
    topic = NewTopic(TRIMMED, 1, scene.setting.replicas, configs={**configs, "flush.messages": "1"})
    await scene.operate(lambda admin: admin.create_topics([topic], timeout_ms=OPERATION_MS))
    await scene.until(lambda: TRIMMED in scene.replicas.image.topics, 5.0)
    for number in range(3):
        known = scene.replicas.image.topics.get(TRIMMED)
        if known is None:
            return
        state = known.partitions[0]
        victim = scene.chance.choice((max(state.leader, 1), *state.replicas))

        async def write_and_trim(admin: Admin, number: int = number) -> None:
            offsets = await write(scene, admin, TRIMMED, number)
            if offsets and scene.faults.inject("records deleted", f"{TRIMMED} before {max(offsets)}", lambda: None):
                at = scene.chance.choice((max(offsets), min(offsets) + len(offsets) // 2))
                await admin.delete_records({(TRIMMED, 0): at}, timeout_ms=OPERATION_MS)

        await scene.operate(write_and_trim)
        await scene.wait(0.0, scene.chance.choice((0.0, 0.3)))
        scene.faults.dies(victim, power=scene.either())
        await scene.wait(0.0, 0.4)
        scene.start(victim)
        await scene.wait(0.3, 1.5)
    await scene.whole()
    if scene.faults.inject("topic deleted", TRIMMED, lambda: None):
        await scene.operate(lambda admin: admin.delete_topics([TRIMMED], timeout_ms=OPERATION_MS))


@act("configs of the load change", replicated)
async def configs_change(scene: Scene) -> None:
    """Segments, flushes and indexes of the topics change their size while a leader dies."""
    for _ in range(2):
        topic = scene.chance.choice(scene.setting.topics).name
        size = scene.chance.choice(("2048", "16384"))
        await scene.alter_topic(topic, "internal.segment.bytes", size)
        await scene.alter_topic(topic, "index.interval.bytes", scene.chance.choice(("256", "4096")))
        leader = scene.leader()
        scene.faults.kill(leader)
        await scene.wait(0.1, 1.0)
        scene.start(leader)
        await scene.written()


@act("everything at once", replicated)
async def everything(scene: Scene) -> None:
    """Kills, stops, pauses, cuts, resets and slow disks, in any order."""
    chance, cluster, faults = scene.chance, scene.cluster, scene.faults
    for _ in range(8):
        kind = chance.choice(("kill", "kill", "stop", "pause", "cut", "one way", "reset", "slow disk", "start", "heal"))
        one, other = chance.sample(scene.nodes, 2)
        if kind == "kill":
            faults.kill(one)
        elif kind == "stop" and cluster.members[one].is_started and len(cluster.up) > len(scene.nodes) // 2 + 1:
            cluster.resume(one)
            scene.heal_network()
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
            scene.start()
        elif kind == "heal":
            cluster.heal()
        await scene.wait(0.0, 1.5)
