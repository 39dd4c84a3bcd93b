"""Cut links between voters: the leader cut off, the quorum split, topologies in which not everybody reaches everybody."""

from __future__ import annotations

from strandline.histories.acts.act import act, five_voters, quorum
from strandline.histories.acts.scene import Scene
from strandline.histories.setting import Setting
from strandline.histories.shape import host

EPOCHS_MAX = 12
"""So many elections at most by a few cut links: pre-votes keep those that are cut off from deposing anybody."""


@act("controller cut off", quorum)
async def controller_cut_off(scene: Scene) -> None:
    """The old leader hears nobody and commits nothing; the others elect another one."""
    controller = scene.controller()
    if scene.faults.isolate(controller):
        await scene.another_controller(controller)
    await scene.commits(1, scene.others(scene.voters, controller))
    scene.heal_network()
    await scene.caught_up(controller)


def brisk_quorum(setting: Setting) -> bool:
    return quorum(setting) and setting.timers.is_brisk


@act("controller cut off for long", brisk_quorum)
async def controller_cut_off_for_long(scene: Scene) -> None:
    """A leader that nobody reaches knows after a while that it leads no more (D5)."""
    controller = scene.controller()
    scene.faults.isolate(controller)
    await _for_long(scene)
    scene.heal_network()
    await scene.caught_up(controller)


@act("controller alone with brokers", lambda setting: brisk_quorum(setting) and not setting.shape.is_combined)
async def controller_alone_with_brokers(scene: Scene) -> None:
    """A leader that no other voter reaches leads no more, though brokers go on fetching from it (D12)."""
    controller = scene.controller()
    scene.faults.split([controller], scene.others(scene.setting.shape.controllers, controller))
    for broker in scene.brokers:
        # They do not know of another leader either.
        for other in scene.others(scene.setting.shape.controllers, controller):
            scene.faults.cut(broker, other)
    await _for_long(scene)
    scene.heal_network()
    await scene.caught_up(controller)


async def _for_long(scene: Scene) -> None:
    """Longer than check quorum takes."""
    timeout_s = scene.timers.quorum_fetch_ms / 1000
    await scene.wait(2.0 + 2.2 * timeout_s, 2.5 + 3.0 * timeout_s)


@act("one voter does not reach the controller", quorum)
async def one_voter_cut_off(scene: Scene) -> None:
    """One link to the leader is cut, while all the others hear it: nobody votes for the one that does not."""
    controller = scene.controller()
    voter = scene.chance.choice(scene.others(scene.voters, controller))
    with scene.no_noise():
        if scene.faults.cut(controller, voter) and voter in scene.brokers and scene.setting.brokers > 2:
            await scene.wait(0.0, 1.0)
        await scene.wait(scene.timers.quorum_s, 2.0 * scene.timers.quorum_s)
    scene.heal_network()
    await scene.caught_up(voter)


@act("controllers cut off in turn", quorum)
async def controllers_cut_off_in_turn(scene: Scene) -> None:
    """As soon as another one leads, it is cut off, and the one before comes back."""
    for _ in range(2):
        controller = scene.controller()
        if scene.faults.isolate(controller):
            await scene.another_controller(controller)
        scene.heal_network()
    scene.faults.isolate(scene.controller())
    await scene.wait(0.5, 4.0)


@act("two and three", five_voters, weight=2)
async def two_and_three(scene: Scene) -> None:
    """Five voters are split: three go on, two do not; then they are one again."""
    voters = scene.chance.sample(scene.voters, 5)
    few, many = voters[:2], voters[2:]
    scene.faults.split(few, [*many, *scene.others(scene.nodes, *voters)])
    await scene.commits(2, many)
    scene.heal_network()
    await scene.caught_up(*voters)


@act("links go, the controller stays", five_voters)
async def controller_stays(scene: Scene) -> None:
    """Links go, but the leader keeps a majority: those that lost it do not depose it."""
    controller = scene.controller()
    if controller not in scene.voters or not await scene.caught_up(*scene.voters):
        return
    a, b, d, e = scene.others(scene.voters, controller)
    with scene.stable_leadership():
        for one, other in ((a, b), (a, d), (a, e), (b, controller), (b, e)):
            scene.faults.cut(one, other)
        await scene.wait(1.0, 2 * scene.timers.quorum_s)
        scene.heal_network()
        await scene.caught_up(*scene.voters)


@act("not everybody reaches everybody", five_voters)
async def not_everybody(scene: Scene) -> None:
    """All restart while only some links are there: whoever is elected by those it reaches stays."""
    a, b, c, d, e = scene.chance.sample(scene.voters, 5)
    for one, other in ((a, b), (a, d), (a, e), (b, c), (b, e)):
        scene.faults.cut(one, other)
    scene.faults.kill(c)
    scene.start(c)
    before = _epoch(scene)
    await scene.until(lambda: scene.cluster.leader() is not None)
    await scene.commits(1)
    await scene.wait(0.5, 3.0)
    _judge_epochs(scene, before)
    scene.heal_network()
    await scene.caught_up(c, d)


@act("one-way links", quorum)
async def one_way_links(scene: Scene) -> None:
    """Single directions fail, here and there; epochs do not run away."""
    before = _epoch(scene)
    for _ in range(3):
        source, target = scene.chance.sample(scene.voters, 2)
        scene.faults.cut_one_way(source, target)
        await scene.wait(0.3, 3.0)
        scene.heal_network()
        await scene.wait(0.0, 1.0)
    _judge_epochs(scene, before)


@act("a ring of one-way links", quorum)
async def ring(scene: Scene) -> None:
    """Everybody is heard by the next one only: there may be no leader, but there is no storm of elections."""
    before = _epoch(scene)
    ring = scene.chance.sample(scene.voters, len(scene.voters))
    for i, source in enumerate(ring):
        for target in ring:
            if target not in (source, ring[(i + 1) % len(ring)]):
                scene.faults.cut_one_way(source, target)
    await scene.wait(1.0, 2 * scene.timers.quorum_s)
    scene.heal_network()
    _judge_epochs(scene, before)


@act("late bytes", quorum)
async def late_bytes(scene: Scene) -> None:
    """What was sent on connections that are long forgotten arrives after what was sent on the new ones."""
    for _ in range(2):
        controller = scene.controller()
        for other in scene.others(scene.voters, controller):
            by_s = scene.chance.uniform(0.5, 2 * scene.timers.quorum_s)
            scene.faults.delay_bytes(host(controller), host(other), by_s)
        await scene.wait(0.5, scene.timers.quorum_s)


def _epoch(scene: Scene) -> int:
    return max((seen.epoch for seen in scene.cluster.sight.nodes.values()), default=0)


def _judge_epochs(scene: Scene, before: int) -> None:
    after = _epoch(scene)
    if after - before > EPOCHS_MAX:
        scene.problem("StableLeadership", f"cut links took the epoch from {before} to {after}")
