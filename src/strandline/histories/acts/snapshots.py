"""Snapshots taken all the time, by every node; followers and brokers that are so far behind that they must fetch one."""

from __future__ import annotations

from strandline.histories.acts.act import act
from strandline.histories.acts.scene import Scene
from strandline.histories.setting import Setting

FORGOTTEN_WITHIN_S = 30.0


def often(setting: Setting) -> bool:
    return setting.snapshots_often and len(setting.shape.ids) >= 3


@act("restarts from snapshots", often)
async def restarts(scene: Scene) -> None:
    """Logs begin behind snapshots; nodes restart from a snapshot and what follows it, after kills and power losses."""
    for _ in range(2):
        victim = scene.chance.choice(scene.nodes)
        scene.faults.dies(victim, power=scene.either())
        await scene.wait(0.1, 1.5)
        scene.start(victim)
        await scene.commits(2)


@act("far behind", often)
async def far_behind(scene: Scene) -> None:
    """A node is away until the others' logs begin behind its end: it has to fetch a snapshot."""
    victim = await _leave_behind(scene)
    scene.start(victim)
    if scene.either():
        await scene.wait(0.0, 0.1)
        scene.faults.dies(victim, power=scene.either())
        scene.start(victim)
    await scene.caught_up(victim)


@act("the controller goes while a snapshot is fetched", lambda setting: often(setting) and setting.voters >= 3)
async def controller_goes_meanwhile(scene: Scene) -> None:
    """Whoever was fetching a snapshot goes on with the next leader."""
    victim = await _leave_behind(scene)
    controller = scene.controller()
    scene.start(victim)
    await scene.wait(0.0, 0.05)
    scene.faults.kill(controller)
    await scene.wait(0.0, 1.0)
    scene.start(controller)
    await scene.caught_up(victim)


async def _leave_behind(scene: Scene) -> int:
    """Kill a node, and wait until every other one has a log that begins behind that node's end."""
    spared = scene.brokers if len(scene.brokers) == 1 else []  # without a broker nobody could change the metadata
    victim = scene.chance.choice(scene.others(scene.nodes, scene.controller(), *spared))
    seen = scene.cluster.seen(victim)
    end_offset = seen.log_end_offset if seen is not None else 0
    if scene.faults.kill(victim):
        await scene.change_metadata()
        await scene.until(
            lambda: all(
                (seen := scene.cluster.seen(node_id)) is not None and seen.log_start_offset > end_offset
                for node_id in scene.cluster.up
            ),
            FORGOTTEN_WITHIN_S,
        )
    return victim
