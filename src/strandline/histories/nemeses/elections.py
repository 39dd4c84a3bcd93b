"""Controllers that come and go: one that is killed or stopped, all killed at once, one after the other."""

from __future__ import annotations

from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import nemesis, quorum


@nemesis("controller killed", quorum)
async def controller_killed(context: NemesisContext) -> None:
    """kill -9 of the active controller: another one goes on, and the old one follows when it is back."""
    controller = context.controller()
    if context.faults.kill(controller):
        await context.another_controller(controller)
    await context.commits(1, context.others(context.voters, controller))
    context.start(controller)
    await context.caught_up(controller)


@nemesis("controller stopped", quorum)
async def controller_stopped(context: NemesisContext) -> None:
    """SIGTERM of the active controller: it hands over, and no node waits for a timeout."""
    controller = context.controller()
    if await context.faults.stop(controller):
        await context.another_controller(controller)
    context.start(controller)
    await context.caught_up(controller)


@nemesis("all controllers killed, a majority back", quorum)
async def majority_back(context: NemesisContext) -> None:
    """All nodes die at once; a majority is enough to go on with all that was committed."""
    context.faults.kill(*context.nodes)
    await context.wait(0.01, 0.5)
    back = context.chance.sample(context.voters, context.setting.voters // 2 + 1)
    context.start(*back, *context.others(context.nodes, *context.voters))
    await context.until(lambda: context.cluster.leader() is not None)
    await context.commits(1)
    await context.caught_up(*back)


@nemesis("voters killed in turn", quorum)
async def voters_killed_in_turn(context: NemesisContext) -> None:
    """One voter after the other is killed and comes back, leaders before others."""
    for _ in range(3):
        victim = context.controller() if context.chance.random() < 0.7 else context.chance.choice(context.voters)
        context.faults.kill(victim)
        await context.wait(0.01, 1.0)
        context.start(victim)
        await context.wait(0.0, 1.0)


@nemesis("one node killed again and again")
async def one_node(context: NemesisContext) -> None:
    """Any node dies, by a kill, in order or without power, and comes back at once: what it vouched for is on its
    disk."""
    victim = context.chance.choice(context.nodes)
    for _ in range(3):
        how = context.chance.choice(("kill", "stop", "power loss"))
        if how == "stop":
            await context.faults.stop(victim)
        else:
            context.faults.dies(victim, power=how == "power loss")
        await context.wait(0.05, 0.6)
        context.start(victim)
        await context.wait(0.2, 1.5)


@nemesis("rolling restart")
async def rolling_restart(context: NemesisContext) -> None:
    """Every node stops in order, hands over what it leads, and comes back, in sync before the next one goes."""
    for node_id in context.nodes[:3]:
        await context.faults.stop(node_id)
        await context.wait(0.0, 0.5)
        context.start(node_id)
        await context.whole()


@nemesis("brokers that observe", lambda setting: not setting.shape.is_combined)
async def observers(context: NemesisContext) -> None:
    """Brokers follow the metadata log through kills of their own and of the controllers'; they never vote."""
    for _ in range(2):
        broker = context.chance.choice(context.brokers)
        context.faults.kill(broker)
        if context.either():
            controller = context.controller()
            context.faults.kill(controller)
            await context.wait(0.0, 0.5)
            context.start(controller)
        await context.wait(0.0, 1.0)
        context.start(broker)
        await context.caught_up(broker)
