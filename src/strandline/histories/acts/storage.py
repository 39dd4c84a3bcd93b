"""Disks: power losses that tear what was not synced, disks that are lost, slow, full or failing."""

from __future__ import annotations

from strandline.histories.acts.act import act, apart, durable, quorum, replicated
from strandline.histories.acts.scene import Scene
from strandline.histories.faults import DISK_FAULTS
from strandline.histories.member import METADATA_DIR
from strandline.histories.replica_sight import Loss
from strandline.histories.setting import OTHER_DIRS, Setting
from strandline.sim.faults import Fault


def _spares_disks(setting: Setting) -> bool:
    """A voter that is a broker too may lose its disk."""
    return durable(setting) or not setting.shape.is_combined


def may_lose_unsynced(setting: Setting) -> bool:
    return setting.may_lose is Loss.UNSYNCED


@act("power losses")
async def power_losses(scene: Scene) -> None:
    """One node after the other goes dark with what only its page cache had: it was not alone, and nothing is lost (KIP-966)."""
    for _ in range(2):
        victim = scene.chance.choice((scene.leader(), scene.chance.choice(scene.nodes)))
        scene.faults.power_loss(victim)
        await scene.wait(0.05, 2.5)
        scene.start(victim)
        await scene.whole()


@act("controller loses power", quorum)
async def controller_loses_power(scene: Scene) -> None:
    """The leader goes dark with what it has just appended: nobody is told, and only what was synced is left."""
    for _ in range(2):
        controller = scene.controller()
        if scene.faults.power_loss(controller):
            await scene.another_controller(controller)
        scene.start(controller)
        await scene.whole()


@act("back without its tail", apart)
async def back_without_its_tail(scene: Scene) -> None:
    """A broker that lost power comes back and reaches the controller, but no leader: nobody takes it for what it was."""
    for _ in range(2):
        victim = scene.chance.choice(scene.brokers)
        scene.faults.power_loss(victim)
        await scene.wait(0.01, scene.chance.choice((0.1, 2.0)))
        scene.faults.split([victim], scene.others(scene.brokers, victim))
        scene.start(victim)
        await scene.wait(0.05, 1.0)
        scene.heal_network()
        await scene.whole()


@act("one lossy restart below the minimum", replicated)
async def lossy_below_minimum(scene: Scene) -> None:
    """Replicas leave until too few are in sync, and one of those that left comes back without what was not synced."""
    one, other, last = scene.chance.sample(scene.state(scene.any_partition()).replicas, 3)
    scene.faults.power_loss(one)
    await scene.wait(0.0, 2.5)
    await scene.faults.stop(other)
    await scene.wait(0.0, 2.5)
    await scene.faults.stop(last)
    await scene.wait(0.0, 1.0)
    scene.start(one)
    await scene.wait(0.0, 2.0)
    for node_id in scene.chance.sample([other, last], 2):
        scene.start(node_id)
        await scene.wait(0.0, 2.0)
    await scene.whole()


@act("the whole cluster without power", lambda setting: may_lose_unsynced(setting) or not setting.cached)
async def whole_cluster(scene: Scene) -> None:
    """All go dark at once: a synced topic loses nothing; another one loses at most what was on no device, and its logs agree."""
    scene.faults.power_loss(*scene.nodes)
    await scene.wait(0.01, 0.5)
    for node_id in scene.chance.sample(scene.nodes, len(scene.nodes)):
        scene.start(node_id)
        await scene.wait(0.0, scene.chance.choice((0.0, 1.0)))
    await scene.written()


@act("controllers without power", lambda setting: quorum(setting) and not setting.shape.is_combined)
async def controllers_without_power(scene: Scene) -> None:
    """All controllers go dark at once: what was acknowledged of the metadata is on a majority of the disks."""
    scene.faults.power_loss(*scene.setting.shape.controllers)
    await scene.wait(0.01, 0.5)
    scene.start()
    await scene.until(lambda: scene.cluster.leader() is not None)
    await scene.commits(1)


@act("killed, then dark")
async def killed_then_dark(scene: Scene) -> None:
    """Processes die and start again, and then their hosts go dark: what a replica vouched for was on its device."""
    for _ in range(2):
        count = scene.chance.randint(1, min(3, len(scene.nodes)))
        victims = scene.chance.sample(scene.nodes, count)
        scene.faults.kill(*victims)
        await scene.wait(0.0, 0.3)
        scene.start(*victims)
        await scene.wait(0.0, 1.0)
        scene.faults.power_loss(*victims)
        await scene.wait(0.0, 0.5)
        scene.start(*victims)
        await scene.wait(0.0, 1.0)


@act("a log dir fails", lambda setting: replicated(setting) and setting.log_dirs > 1, weight=2)
async def log_dir_fails(scene: Scene) -> None:
    """One of the log dirs of a broker is full, or can't be written or synced: its replicas go offline, and others lead."""
    for _ in range(2):
        victim = scene.chance.choice(scene.brokers)
        directory = scene.chance.choice(OTHER_DIRS[: scene.setting.log_dirs - 1])
        for fault in _faults(scene):
            scene.faults.break_disk(victim, directory, fault)
        await scene.written(20)
        await scene.wait(0.0, 3.0)
        power = scene.either()
        scene.faults.dies(victim, power=power)
        scene.cluster.reboot_repaired(victim)
        await scene.whole()


@act("the metadata log's disk fails", quorum)
async def metadata_disk_fails(scene: Scene) -> None:
    """The metadata log of one voter can't be written or synced any more: that node ends, the others go on."""
    victim = scene.cluster.members[scene.chance.choice(scene.voters)]
    broken = [scene.faults.break_disk(victim.id, METADATA_DIR, fault) for fault in _faults(scene)]
    if any(broken):
        await scene.until(lambda: not victim.is_up, 15.0)
    await scene.commits(1, scene.others(scene.voters, victim.id))
    scene.cluster.reboot_repaired(victim.id)


@act("a disk fails for a while", replicated, weight=2)
async def disk_fails(scene: Scene) -> None:
    """A whole disk is full or broken: its broker goes offline with what it has, and is itself again once it is repaired."""
    for _ in range(2):
        victim = scene.chance.choice(scene.brokers)
        for fault in _faults(scene):
            scene.faults.break_disk(victim, "/", fault)
        await scene.written(10)
        await scene.wait(0.0, 3.0)
        scene.cluster.reboot_repaired(victim)
        await scene.whole()


def _faults(scene: Scene) -> list[Fault]:
    """What is wrong with a disk: one thing or two."""
    return scene.chance.sample(DISK_FAULTS, scene.chance.choice((1, 2, 2)))


@act("slow disks", replicated)
async def slow_disks(scene: Scene) -> None:
    """Disks take up to a hundred times as long; a power loss hits one of the slow ones."""
    slow = sorted({scene.controller(), *scene.chance.sample(scene.brokers, 2)})
    for node_id in slow:
        scene.faults.slow_disk(node_id, scene.chance.choice((20, 100)))
    await scene.wait(0.5, 2.0)
    victim = scene.chance.choice(slow)
    scene.faults.power_loss(victim)
    await scene.wait(0.0, 1.0)
    scene.start(victim)
    await scene.whole()


@act("a broker loses its disk", durable)
async def broker_loses_disk(scene: Scene) -> None:
    """A broker, or a voter, or both in one, comes back with an empty disk: it fetches everything anew, and nothing is lost."""
    candidates = scene.others(scene.nodes, scene.controller()) if scene.setting.voters > 1 else scene.brokers
    victim = scene.chance.choice(candidates)
    if scene.setting.shape.is_dynamic and victim not in scene.brokers:
        return  # there it is another voter, who has to be let in first
    if scene.faults.lose_disk(victim):
        await scene.until(lambda: scene.cluster.leader() is not None)
        await scene.written(within_s=10.0)
    scene.start(victim)
    await scene.caught_up(victim)
    await scene.whole()


@act(
    "a voter loses its disk",
    lambda setting: quorum(setting) and not setting.shape.is_dynamic and _spares_disks(setting),
)
async def voter_loses_disk(scene: Scene) -> None:
    """A voter comes back with an empty disk, once the others have a leader and all that was committed: nothing is lost."""
    victim = scene.chance.choice(scene.voters)
    others = scene.others(scene.voters, victim)
    if scene.faults.lose_disk(victim):
        await scene.another_controller(victim)
        await scene.caught_up(*others)
        await scene.commits(1, others)
    scene.start(victim)
    await scene.caught_up(victim)


@act("unclean elections", lambda setting: replicated(setting) and setting.may_lose is Loss.ANYTHING)
async def unclean(scene: Scene) -> None:
    """Whoever is there may lead: records may be lost, but never do two replicas end with different ones."""
    order = scene.chance.sample(scene.brokers, len(scene.brokers))
    for node_id in order:
        scene.faults.dies(node_id, power=scene.either())
        await scene.wait(0.0, 2.0)
    for node_id in scene.chance.sample(order, len(order)):
        scene.start(node_id)
        await scene.wait(0.0, 1.5)
    await scene.written()


@act("a disk fills up slowly", replicated, weight=2)
async def disk_fills_up(scene: Scene) -> None:
    """A log dir, or the whole disk, has room for a little more and then for nothing: what was written is there, what was not is
    refused, and the broker is itself again once there is room."""
    for _ in range(2):
        victim = scene.chance.choice(scene.brokers)
        directory = scene.chance.choice(("/", *OTHER_DIRS[: scene.setting.log_dirs - 1]))
        scene.faults.fill_disk(victim, directory, scene.chance.randint(200, 12_000))
        with scene.busy():
            await scene.written(20)
        await scene.wait(0.0, 2.0)
        if scene.either():
            scene.faults.kill(victim)
            scene.start(victim)  # there is still no room
            await scene.wait(0.2, 1.5)
        scene.cluster.reboot_repaired(victim)
        await scene.whole()


@act("restarted after a failed sync", replicated, weight=2)
async def restarted_after_failed_sync(scene: Scene) -> None:
    """A sync fails, and only the process is started again: what it reads may be in the page cache alone, also when a later sync
    says that all is well. Then the power goes."""
    for _ in range(2):
        victim = scene.cluster.members[scene.chance.choice(scene.brokers)]
        directory = scene.chance.choice(("/", *OTHER_DIRS[: scene.setting.log_dirs - 1]))
        if scene.faults.break_disk(victim.id, directory, Fault.SYNC_ERROR):
            with scene.busy():
                await scene.wait(0.3, 1.5)
            scene.faults.kill(victim.id)
            scene.cluster.repair_disk(victim.id)
            scene.start(victim.id)
            await scene.wait(0.3, 2.5)
            scene.faults.power_loss(victim.id)
        scene.start(victim.id)
        await scene.whole()
