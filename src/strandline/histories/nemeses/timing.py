"""Time: clocks that drift and jump, nodes that are slow or stand still for a while."""

from __future__ import annotations

from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import nemesis, quorum

HOUR_MS = 3_600_000


@nemesis("clocks drift and jump")
async def clocks(context: NemesisContext) -> None:
    """Clocks run up to a tenth too fast or too slow, and wall clocks jump by an hour: only liveness may feel it."""
    for node_id in context.nodes[:3]:
        context.faults.clock_drift(node_id, context.chance.uniform(-0.1, 0.1))
    for _ in range(3):
        node_id = context.chance.choice(context.nodes)
        context.faults.clock_jump(node_id, context.chance.choice((-HOUR_MS, HOUR_MS)))
        if context.either():
            controller = context.controller()
            context.faults.kill(controller)
            await context.wait(0.0, 0.3)
            context.start(controller)
        await context.wait(0.1, 2.0)


@nemesis("controller paused", quorum)
async def controller_paused(context: NemesisContext) -> None:
    """The leader stands still until it is deposed, and wakes up believing that it leads: it commits nothing more."""
    controller = context.controller()
    if context.faults.pause(controller):
        await context.another_controller(controller)
        await context.commits(1, context.others(context.voters, controller))
    context.cluster.resume(controller)
    await context.wait(0.0, 0.5)
    await context.caught_up(controller)


@nemesis("paused now and then", lambda setting: len(setting.shape.ids) >= 2)
async def paused_now_and_then(context: NemesisContext) -> None:
    """Any node stands still for any time, also while another one is killed."""
    for _ in range(2):
        one, other = context.chance.sample(context.nodes, 2)
        context.faults.pause(one)
        await context.wait(0.0, 3.0)
        if context.chance.random() < 0.4:
            context.faults.kill(other)
        context.cluster.resume(one)
        await context.wait(0.0, 0.5)
        context.start(other)
        await context.wait(0.0, 0.5)


@nemesis("slow nodes")
async def slow_nodes(context: NemesisContext) -> None:
    """Event loops that take a hundred times as long per turn: late, but never wrong."""
    for node_id in {context.controller(), context.chance.choice(context.nodes)}:
        context.faults.slow(node_id, context.chance.choice((20, 100)))
    await context.written(10)
    victim = context.chance.choice(context.nodes)
    context.faults.kill(victim)
    await context.wait(0.5, 2.0)
    context.start(victim)
    await context.written()
