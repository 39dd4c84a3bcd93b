"""Snapshots taken all the time, by every node; followers and brokers that are so far behind that they must fetch
one."""

from __future__ import annotations

from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import nemesis
from strandline.histories.setting import HistorySetting

FORGOTTEN_WITHIN_S = 30.0


def often(setting: HistorySetting) -> bool:
    return setting.snapshots_often and len(setting.shape.ids) >= 3


@nemesis("restarts from snapshots", often)
async def restarts(context: NemesisContext) -> None:
    """Logs begin behind snapshots; nodes restart from a snapshot and what follows it, after kills and power losses."""
    for _ in range(2):
        victim = context.chance.choice(context.nodes)
        context.faults.dies(victim, power=context.either())
        await context.wait(0.1, 1.5)
        context.start(victim)
        await context.commits(2)


@nemesis("far behind", often)
async def far_behind(context: NemesisContext) -> None:
    """A node is away until the others' logs begin behind its end: it has to fetch a snapshot."""
    victim = await _leave_behind(context)
    context.start(victim)
    if context.either():
        await context.wait(0.0, 0.1)
        context.faults.dies(victim, power=context.either())
        context.start(victim)
    await context.caught_up(victim)


@nemesis("the controller goes while a snapshot is fetched", lambda setting: often(setting) and setting.voters >= 3)
async def controller_goes_meanwhile(context: NemesisContext) -> None:
    """A node that was fetching a snapshot goes on with the next leader."""
    victim = await _leave_behind(context)
    controller = context.controller()
    context.start(victim)
    await context.wait(0.0, 0.05)
    context.faults.kill(controller)
    await context.wait(0.0, 1.0)
    context.start(controller)
    await context.caught_up(victim)


async def _leave_behind(context: NemesisContext) -> int:
    """Kill a node, and wait until every other one has a log that begins behind that node's end."""
    spared = (
        context.brokers if len(context.brokers) == 1 else []
    )  # without a broker no client could change the metadata
    victim = context.chance.choice(context.others(context.nodes, context.controller(), *spared))
    seen = context.cluster.seen(victim)
    end_offset = seen.log_end_offset if seen is not None else 0
    if context.faults.kill(victim):
        await context.change_metadata()
        await context.until(
            lambda: all(
                (seen := context.cluster.seen(node_id)) is not None and seen.log_start_offset > end_offset
                for node_id in context.cluster.up
            ),
            FORGOTTEN_WITHIN_S,
        )
    return victim
