"""Controllers that come and go: one that is killed or stopped, all killed at once, one after the other."""

from __future__ import annotations

from strandline.histories.acts.act import act, quorum
from strandline.histories.acts.scene import Scene


@act("controller killed", quorum)
async def controller_killed(scene: Scene) -> None:
    """kill -9 of the active controller: another one goes on, and the old one follows when it is back."""
    controller = scene.controller()
    if scene.faults.kill(controller):
        await scene.another_controller(controller)
    await scene.commits(1, scene.others(scene.voters, controller))
    scene.start(controller)
    await scene.caught_up(controller)


@act("controller stopped", quorum)
async def controller_stopped(scene: Scene) -> None:
    """SIGTERM of the active controller: it hands over, and nobody waits for a timeout."""
    controller = scene.controller()
    if await scene.faults.stop(controller):
        await scene.another_controller(controller)
    scene.start(controller)
    await scene.caught_up(controller)


@act("all controllers killed, a majority back", quorum)
async def majority_back(scene: Scene) -> None:
    """Everybody dies at once; a majority is enough to go on with all that was committed."""
    scene.faults.kill(*scene.nodes)
    await scene.wait(0.01, 0.5)
    back = scene.chance.sample(scene.voters, scene.setting.voters // 2 + 1)
    scene.start(*back, *scene.others(scene.nodes, *scene.voters))
    await scene.until(lambda: scene.cluster.leader() is not None)
    await scene.commits(1)
    await scene.caught_up(*back)


@act("voters killed in turn", quorum)
async def voters_killed_in_turn(scene: Scene) -> None:
    """One voter after the other is killed and comes back, leaders before others."""
    for _ in range(3):
        victim = scene.controller() if scene.chance.random() < 0.7 else scene.chance.choice(scene.voters)
        scene.faults.kill(victim)
        await scene.wait(0.01, 1.0)
        scene.start(victim)
        await scene.wait(0.0, 1.0)


@act("one node killed again and again")
async def one_node(scene: Scene) -> None:
    """Any node dies, by a kill, in order or without power, and comes back at once: what it vouched for is on its disk."""
    victim = scene.chance.choice(scene.nodes)
    for _ in range(3):
        how = scene.chance.choice(("kill", "stop", "power loss"))
        if how == "stop":
            await scene.faults.stop(victim)
        else:
            scene.faults.dies(victim, power=how == "power loss")
        await scene.wait(0.05, 0.6)
        scene.start(victim)
        await scene.wait(0.2, 1.5)


@act("rolling restart")
async def rolling_restart(scene: Scene) -> None:
    """Every node stops in order, hands over what it leads, and comes back, in sync before the next one goes."""
    for node_id in scene.nodes[:3]:
        await scene.faults.stop(node_id)
        await scene.wait(0.0, 0.5)
        scene.start(node_id)
        await scene.whole()


@act("brokers that observe", lambda setting: not setting.shape.is_combined)
async def observers(scene: Scene) -> None:
    """Brokers follow the metadata log through kills of their own and of the controllers'; they never vote."""
    for _ in range(2):
        broker = scene.chance.choice(scene.brokers)
        scene.faults.kill(broker)
        if scene.either():
            controller = scene.controller()
            scene.faults.kill(controller)
            await scene.wait(0.0, 0.5)
            scene.start(controller)
        await scene.wait(0.0, 1.0)
        scene.start(broker)
        await scene.caught_up(broker)
