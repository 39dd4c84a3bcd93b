"""Changes of the ISR that reach the controller late: follower, leader or partition are not what they were by then (B4, B5)."""

from __future__ import annotations

from strandline.client.aio import Admin
from strandline.client.flow.described import ElectionType
from strandline.histories.acts.act import act, apart
from strandline.histories.acts.scene import OPERATION_MS, Scene
from strandline.histories.setting import LAX, Setting

CAUGHT_UP_WITHIN_S = 4.0


async def prefer(scene: Scene, number: int, first: int) -> None:
    """The replicas of a partition in another order, and the first of them elected."""
    where = scene.convergence.names[number]
    order = [first, *scene.others(scene.state(number).replicas, first)]

    async def ask(admin: Admin) -> None:
        await admin.alter_partition_reassignments({where: order}, timeout_ms=OPERATION_MS)
        await admin.elect_leaders(ElectionType.PREFERRED, [where], timeout_ms=OPERATION_MS)

    if scene.faults.inject("election on request", f"n{first} of {where}", lambda: None):
        await scene.operate(ask)


async def put_out(scene: Scene, follower: int, number: int) -> None:
    """A follower that does not reach its leader leaves the ISR, and is alive."""
    leader = scene.leader(number)
    if follower == leader:
        return  # it was preferred, and elected meanwhile
    scene.faults.cut(leader, follower)
    with scene.busy():
        await scene.out_of_sync(follower, leader, number, 2.0 * scene.timers.lag_s + 6.0)


@act("an ISR change comes late", apart, weight=5)
async def late_change(scene: Scene) -> None:
    """A follower has caught up, and its leader asks for it to be in sync. Before that arrives the follower restarts without its
    page cache (KIP-903), stops, another one leads, or another member restarts: the request is refused, and asked anew."""
    for how in scene.chance.sample(("restart", "stop", "depose", "other restarts"), 3):
        number = scene.any_partition()
        leader, key = scene.leader(number), scene.convergence.key(number)
        followers = scene.followers(number)
        follower = scene.chance.choice(followers)
        (other, *_) = scene.others(followers, follower)
        await put_out(scene, follower, number)
        for controller in scene.setting.shape.controllers:
            scene.faults.cut_one_way(leader, controller)
        scene.cluster.heal_link(leader, follower)

        def is_asked_for(leader: int = leader, key: object = key) -> bool:
            replica = scene.replicas.replicas.get((leader, key))  # type: ignore[arg-type]
            return replica is not None and replica.wish is not None

        await scene.until(is_asked_for, CAUGHT_UP_WITHIN_S)
        if how == "restart":
            scene.faults.dies(follower, power=scene.either())
            scene.start(follower)
            await scene.until(lambda follower=follower: scene.replicas.is_current(follower), 3.0)  # type: ignore[misc]
        elif how == "stop":
            await scene.faults.stop(follower)
        elif how == "depose":
            await prefer(scene, number, other)
        else:
            scene.faults.kill(other)
            scene.start(other)
            await scene.until(lambda other=other: scene.replicas.is_current(other), 3.0)  # type: ignore[misc]
        scene.heal_network()
        await scene.wait(0.0, 0.5)
        scene.start(follower)
        await scene.whole()


@act("an answer about the ISR is lost", apart, weight=2)
async def lost_answer(scene: Scene) -> None:
    """The controller does what a leader asked for, and the leader is not told: whoever may be in sync counts until it is."""
    for _ in range(2):
        number = scene.any_partition()
        leader = scene.leader(number)
        follower = scene.chance.choice(scene.followers(number))
        await put_out(scene, follower, number)
        scene.cluster.heal_link(leader, follower)
        for controller in scene.setting.shape.controllers:
            scene.faults.cut_one_way(controller, leader)
        await scene.wait(0.3, 1.5)
        for controller in scene.setting.shape.controllers:
            scene.faults.reset(f"n{leader}", f"n{controller}")
        scene.heal_network()
        await scene.written()


@act("preferred, and not in sync", lambda setting: apart(setting) and not setting.rebalances, weight=2)
async def preferred_out(scene: Scene) -> None:
    """The preferred leader of a partition is alive and lacks what is committed: asked for, it is not elected."""
    number = scene.any_partition()
    preferred = scene.chance.choice(scene.followers(number))
    where = scene.convergence.names[number]
    order = [preferred, *scene.others(scene.state(number).replicas, preferred)]
    await scene.operate(lambda admin: admin.alter_partition_reassignments({where: order}, timeout_ms=OPERATION_MS))
    await put_out(scene, preferred, number)
    for _ in range(2):
        if scene.faults.inject("election on request", "preferred", lambda: None):
            await scene.operate(lambda admin: admin.elect_leaders(ElectionType.PREFERRED, timeout_ms=OPERATION_MS))
        await scene.wait(0.0, 1.0)
    scene.heal_network()
    await scene.whole()


def _lax(setting: Setting) -> bool:
    return apart(setting) and any(topic.name == LAX for topic in setting.topics)


@act("the last in sync dies", _lax, weight=2)
async def last_in_sync(scene: Scene) -> None:
    """A leader is alone in sync, and dies: those that are there lack what it had, and nobody leads until it is back."""
    number = scene.partition_of(LAX)
    assert number is not None
    leader = scene.leader(number)
    for follower in scene.followers(number):
        scene.faults.cut(leader, follower)
    with scene.busy():
        for follower in scene.followers(number):
            await scene.out_of_sync(follower, leader, number, 2.0 * scene.timers.lag_s + 6.0)
    await scene.wait(0.5, 2.0)
    scene.faults.dies(leader, power=scene.either())
    scene.heal_network()
    await scene.wait(0.5, 3.0)
    scene.start(leader)
    await scene.whole()


@act("eligible, and back without its tail", lambda setting: apart(setting) and bool(setting.cached), weight=2)
async def eligible_and_back(scene: Scene) -> None:
    """Replicas leave below the minimum, so that the last one to leave is eligible; it comes back without what was not synced, and
    is not any more (KIP-966). Then the last one in sync stops: nobody leads who may lack anything."""
    number = scene.any_partition()
    last = scene.leader(number)
    one, other = scene.followers(number)
    await scene.faults.stop(one)
    await scene.wait(0.2, 1.0)
    scene.faults.power_loss(other)
    await scene.wait(0.0, 1.0)
    scene.faults.split([other], scene.others(scene.brokers, other))
    scene.start(other)
    await scene.until(lambda: scene.replicas.is_current(other), 4.0)
    await scene.faults.stop(last)
    await scene.wait(0.0, 1.5)
    scene.heal_network()
    for node_id in scene.chance.sample([one, last], 2):
        scene.start(node_id)
        await scene.wait(0.0, 1.0)
    await scene.whole()
