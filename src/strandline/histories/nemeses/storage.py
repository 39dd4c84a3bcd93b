"""Disks: power losses that tear what was not synced, disks that are lost, slow, full or failing."""

from __future__ import annotations

from strandline.histories.fault_injector import DISK_FAULTS
from strandline.histories.member import METADATA_DIR
from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import apart, durable, nemesis, quorum, replicated
from strandline.histories.replica_observation import PermittedLoss
from strandline.histories.setting import OTHER_DIRS, HistorySetting
from strandline.sim.faults import Fault


def _spares_disks(setting: HistorySetting) -> bool:
    """A voter that is a broker too may lose its disk."""
    return durable(setting) or not setting.shape.is_combined


def may_lose_unsynced(setting: HistorySetting) -> bool:
    return setting.may_lose is PermittedLoss.UNSYNCED


@nemesis("power losses")
async def power_losses(context: NemesisContext) -> None:
    """One node after the other goes dark with what only its page cache had: it was not alone, and nothing is lost
    (KIP-966)."""
    for _ in range(2):
        victim = context.chance.choice((context.leader(), context.chance.choice(context.nodes)))
        context.faults.power_loss(victim)
        await context.wait(0.05, 2.5)
        context.start(victim)
        await context.whole()


@nemesis("controller loses power", quorum)
async def controller_loses_power(context: NemesisContext) -> None:
    """The leader goes dark with what it has just appended: none of it was acknowledged, and only what was synced is
    left."""
    for _ in range(2):
        controller = context.controller()
        if context.faults.power_loss(controller):
            await context.another_controller(controller)
        context.start(controller)
        await context.whole()


@nemesis("back without its tail", apart)
async def back_without_its_tail(context: NemesisContext) -> None:
    """A broker that lost power comes back and reaches the controller, but no leader: it is not taken for what it
    was."""
    for _ in range(2):
        victim = context.chance.choice(context.brokers)
        context.faults.power_loss(victim)
        await context.wait(0.01, context.chance.choice((0.1, 2.0)))
        context.faults.split([victim], context.others(context.brokers, victim))
        context.start(victim)
        await context.wait(0.05, 1.0)
        context.heal_network()
        await context.whole()


@nemesis("one lossy restart below the minimum", replicated)
async def lossy_below_minimum(context: NemesisContext) -> None:
    """Replicas leave until too few are in sync, and one of those that left comes back without what was not synced."""
    one, other, last = context.chance.sample(context.state(context.any_partition()).replicas, 3)
    context.faults.power_loss(one)
    await context.wait(0.0, 2.5)
    await context.faults.stop(other)
    await context.wait(0.0, 2.5)
    await context.faults.stop(last)
    await context.wait(0.0, 1.0)
    context.start(one)
    await context.wait(0.0, 2.0)
    for node_id in context.chance.sample([other, last], 2):
        context.start(node_id)
        await context.wait(0.0, 2.0)
    await context.whole()


@nemesis("the whole cluster without power", lambda setting: may_lose_unsynced(setting) or not setting.cached)
async def whole_cluster(context: NemesisContext) -> None:
    """All go dark at once: a synced topic loses nothing; another one loses at most what was on no device, and its
    logs agree."""
    context.faults.power_loss(*context.nodes)
    await context.wait(0.01, 0.5)
    for node_id in context.chance.sample(context.nodes, len(context.nodes)):
        context.start(node_id)
        await context.wait(0.0, context.chance.choice((0.0, 1.0)))
    await context.written()


@nemesis("controllers without power", lambda setting: quorum(setting) and not setting.shape.is_combined)
async def controllers_without_power(context: NemesisContext) -> None:
    """All controllers go dark at once: what was acknowledged of the metadata is on a majority of the disks."""
    context.faults.power_loss(*context.setting.shape.controllers)
    await context.wait(0.01, 0.5)
    context.start()
    await context.until(lambda: context.cluster.leader() is not None)
    await context.commits(1)


@nemesis("killed, then dark")
async def killed_then_dark(context: NemesisContext) -> None:
    """Processes die and start again, and then their hosts go dark: what a replica vouched for was on its device."""
    for _ in range(2):
        count = context.chance.randint(1, min(3, len(context.nodes)))
        victims = context.chance.sample(context.nodes, count)
        context.faults.kill(*victims)
        await context.wait(0.0, 0.3)
        context.start(*victims)
        await context.wait(0.0, 1.0)
        context.faults.power_loss(*victims)
        await context.wait(0.0, 0.5)
        context.start(*victims)
        await context.wait(0.0, 1.0)


@nemesis("a log dir fails", lambda setting: replicated(setting) and setting.log_dirs > 1, weight=2)
async def log_dir_fails(context: NemesisContext) -> None:
    """One of the log dirs of a broker is full, or can't be written or synced: its replicas go offline, and others
    lead."""
    for _ in range(2):
        victim = context.chance.choice(context.brokers)
        directory = context.chance.choice(OTHER_DIRS[: context.setting.log_dirs - 1])
        for fault in _faults(context):
            context.faults.break_disk(victim, directory, fault)
        await context.written(20)
        await context.wait(0.0, 3.0)
        power = context.either()
        context.faults.dies(victim, power=power)
        context.cluster.reboot_repaired(victim)
        await context.whole()


@nemesis("the metadata log's disk fails", quorum)
async def metadata_disk_fails(context: NemesisContext) -> None:
    """The metadata log of one voter can't be written or synced any more: that node ends, the others go on."""
    victim = context.cluster.members[context.chance.choice(context.voters)]
    broken = [context.faults.break_disk(victim.id, METADATA_DIR, fault) for fault in _faults(context)]
    if any(broken):
        await context.until(lambda: not victim.is_up, 15.0)
    await context.commits(1, context.others(context.voters, victim.id))
    context.cluster.reboot_repaired(victim.id)


@nemesis("a disk fails for a while", replicated, weight=2)
async def disk_fails(context: NemesisContext) -> None:
    """A whole disk is full or broken: its broker goes offline with what it has, and is itself again once it is
    repaired."""
    for _ in range(2):
        victim = context.chance.choice(context.brokers)
        for fault in _faults(context):
            context.faults.break_disk(victim, "/", fault)
        await context.written(10)
        await context.wait(0.0, 3.0)
        context.cluster.reboot_repaired(victim)
        await context.whole()


def _faults(context: NemesisContext) -> list[Fault]:
    """What is wrong with a disk: one thing or two."""
    return context.chance.sample(DISK_FAULTS, context.chance.choice((1, 2, 2)))


@nemesis("slow disks", replicated)
async def slow_disks(context: NemesisContext) -> None:
    """Disks take up to a hundred times as long; a power loss hits one of the slow ones."""
    slow = sorted({context.controller(), *context.chance.sample(context.brokers, 2)})
    for node_id in slow:
        context.faults.slow_disk(node_id, context.chance.choice((20, 100)))
    await context.wait(0.5, 2.0)
    victim = context.chance.choice(slow)
    context.faults.power_loss(victim)
    await context.wait(0.0, 1.0)
    context.start(victim)
    await context.whole()


@nemesis("a broker loses its disk", durable)
async def broker_loses_disk(context: NemesisContext) -> None:
    """A broker, or a voter, or both in one, comes back with an empty disk: it fetches everything anew, and nothing
    is lost."""
    candidates = context.others(context.nodes, context.controller()) if context.setting.voters > 1 else context.brokers
    victim = context.chance.choice(candidates)
    if context.setting.shape.is_dynamic and victim not in context.brokers:
        return  # there it is another voter, who has to be let in first
    if context.faults.lose_disk(victim):
        await context.until(lambda: context.cluster.leader() is not None)
        await context.written(within_s=10.0)
    context.start(victim)
    await context.caught_up(victim)
    await context.whole()


@nemesis(
    "a voter loses its disk",
    lambda setting: quorum(setting) and not setting.shape.is_dynamic and _spares_disks(setting),
)
async def voter_loses_disk(context: NemesisContext) -> None:
    """A voter comes back with an empty disk, once the others have a leader and all that was committed: nothing is
    lost."""
    victim = context.chance.choice(context.voters)
    others = context.others(context.voters, victim)
    if context.faults.lose_disk(victim):
        await context.another_controller(victim)
        await context.caught_up(*others)
        await context.commits(1, others)
    context.start(victim)
    await context.caught_up(victim)


@nemesis("unclean elections", lambda setting: replicated(setting) and setting.may_lose is PermittedLoss.ANYTHING)
async def unclean(context: NemesisContext) -> None:
    """Any replica may lead: records may be lost, but never do two replicas end with different ones."""
    order = context.chance.sample(context.brokers, len(context.brokers))
    for node_id in order:
        context.faults.dies(node_id, power=context.either())
        await context.wait(0.0, 2.0)
    for node_id in context.chance.sample(order, len(order)):
        context.start(node_id)
        await context.wait(0.0, 1.5)
    await context.written()


@nemesis("a disk fills up slowly", replicated, weight=2)
async def disk_fills_up(context: NemesisContext) -> None:
    """A log dir, or the whole disk, has room for a little more and then for nothing: what was written is there, what
    was not is refused, and the broker is itself again once there is room."""
    for _ in range(2):
        victim = context.chance.choice(context.brokers)
        directory = context.chance.choice(("/", *OTHER_DIRS[: context.setting.log_dirs - 1]))
        context.faults.fill_disk(victim, directory, context.chance.randint(200, 12_000))
        with context.busy():
            await context.written(20)
        await context.wait(0.0, 2.0)
        if context.either():
            context.faults.kill(victim)
            context.start(victim)  # there is still no room
            await context.wait(0.2, 1.5)
        context.cluster.reboot_repaired(victim)
        await context.whole()


@nemesis("restarted after a failed sync", replicated, weight=2)
async def restarted_after_failed_sync(context: NemesisContext) -> None:
    """A sync fails, and only the process is started again: what it reads may be in the page cache alone, also when a
    later sync says that all is well. Then the power goes."""
    for _ in range(2):
        victim = context.cluster.members[context.chance.choice(context.brokers)]
        directory = context.chance.choice(("/", *OTHER_DIRS[: context.setting.log_dirs - 1]))
        if context.faults.break_disk(victim.id, directory, Fault.SYNC_ERROR):
            with context.busy():
                await context.wait(0.3, 1.5)
            context.faults.kill(victim.id)
            context.cluster.repair_disk(victim.id)
            context.start(victim.id)
            await context.wait(0.3, 2.5)
            context.faults.power_loss(victim.id)
        context.start(victim.id)
        await context.whole()
