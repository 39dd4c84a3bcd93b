"""Changes of the ISR that reach the controller late: follower, leader or partition are not what they were by then
(B4, B5)."""

from __future__ import annotations

from strandline.client.aio import Admin
from strandline.client.flow.descriptions import ElectionType
from strandline.histories.nemeses.context import OPERATION_MS, NemesisContext
from strandline.histories.nemeses.nemesis import apart, nemesis
from strandline.histories.setting import LAX, HistorySetting

CAUGHT_UP_WITHIN_S = 4.0


async def prefer(context: NemesisContext, number: int, first: int) -> None:
    """The replicas of a partition in another order, and the first of them elected."""
    where = context.convergence.names[number]
    order = [first, *context.others(context.state(number).replicas, first)]

    async def ask(admin: Admin) -> None:
        await admin.alter_partition_reassignments({where: order}, timeout_ms=OPERATION_MS)
        await admin.elect_leaders(ElectionType.PREFERRED, [where], timeout_ms=OPERATION_MS)

    if context.faults.inject("election on request", f"n{first} of {where}", lambda: None):
        await context.operate(ask)


async def put_out(context: NemesisContext, follower: int, number: int) -> None:
    """A follower that does not reach its leader leaves the ISR, and is alive."""
    leader = context.leader(number)
    if follower == leader:
        return  # it was preferred, and elected meanwhile
    context.faults.cut(leader, follower)
    with context.busy():
        await context.out_of_sync(follower, leader, number, 2.0 * context.timers.lag_s + 6.0)


@nemesis("an ISR change comes late", apart, weight=5)
async def late_change(context: NemesisContext) -> None:
    """A follower has caught up, and its leader asks for it to be in sync. Before that arrives the follower restarts
    without its page cache (KIP-903), stops, another one leads, or another member restarts: the request is refused,
    and asked anew."""
    for how in context.chance.sample(("restart", "stop", "depose", "other restarts"), 3):
        number = context.any_partition()
        leader, key = context.leader(number), context.convergence.key(number)
        followers = context.followers(number)
        follower = context.chance.choice(followers)
        (other, *_) = context.others(followers, follower)
        await put_out(context, follower, number)
        for controller in context.setting.shape.controllers:
            context.faults.cut_one_way(leader, controller)
        context.cluster.heal_link(leader, follower)

        def is_asked_for(leader: int = leader, key: object = key) -> bool:
            replica = context.replicas.replicas.get((leader, key))  # type: ignore[arg-type]
            return replica is not None and replica.proposed_isr is not None

        await context.until(is_asked_for, CAUGHT_UP_WITHIN_S)
        if how == "restart":
            context.faults.dies(follower, power=context.either())
            context.start(follower)
            await context.until(lambda follower=follower: context.replicas.is_current(follower), 3.0)  # type: ignore[misc]
        elif how == "stop":
            await context.faults.stop(follower)
        elif how == "depose":
            await prefer(context, number, other)
        else:
            context.faults.kill(other)
            context.start(other)
            await context.until(lambda other=other: context.replicas.is_current(other), 3.0)  # type: ignore[misc]
        context.heal_network()
        await context.wait(0.0, 0.5)
        context.start(follower)
        await context.whole()


@nemesis("an answer about the ISR is lost", apart, weight=2)
async def lost_answer(context: NemesisContext) -> None:
    """The controller does what a leader asked for, and the answer is lost: every replica that may be in sync counts
    until the leader knows."""
    for _ in range(2):
        number = context.any_partition()
        leader = context.leader(number)
        follower = context.chance.choice(context.followers(number))
        await put_out(context, follower, number)
        context.cluster.heal_link(leader, follower)
        for controller in context.setting.shape.controllers:
            context.faults.cut_one_way(controller, leader)
        await context.wait(0.3, 1.5)
        for controller in context.setting.shape.controllers:
            context.faults.reset(f"n{leader}", f"n{controller}")
        context.heal_network()
        await context.written()


@nemesis("preferred, and not in sync", lambda setting: apart(setting) and not setting.rebalances, weight=2)
async def preferred_out(context: NemesisContext) -> None:
    """The preferred leader of a partition is alive and lacks what is committed: asked for, it is not elected."""
    number = context.any_partition()
    preferred = context.chance.choice(context.followers(number))
    where = context.convergence.names[number]
    order = [preferred, *context.others(context.state(number).replicas, preferred)]
    await context.operate(lambda admin: admin.alter_partition_reassignments({where: order}, timeout_ms=OPERATION_MS))
    await put_out(context, preferred, number)
    for _ in range(2):
        if context.faults.inject("election on request", "preferred", lambda: None):
            await context.operate(lambda admin: admin.elect_leaders(ElectionType.PREFERRED, timeout_ms=OPERATION_MS))
        await context.wait(0.0, 1.0)
    context.heal_network()
    await context.whole()


def _lax(setting: HistorySetting) -> bool:
    return apart(setting) and any(topic.name == LAX for topic in setting.topics)


@nemesis("the last in sync dies", _lax, weight=2)
async def last_in_sync(context: NemesisContext) -> None:
    """A leader is alone in sync, and dies: those that are there lack what it had, and there is no leader until it is
    back."""
    number = context.partition_of(LAX)
    assert number is not None
    leader = context.leader(number)
    for follower in context.followers(number):
        context.faults.cut(leader, follower)
    with context.busy():
        for follower in context.followers(number):
            await context.out_of_sync(follower, leader, number, 2.0 * context.timers.lag_s + 6.0)
    await context.wait(0.5, 2.0)
    context.faults.dies(leader, power=context.either())
    context.heal_network()
    await context.wait(0.5, 3.0)
    context.start(leader)
    await context.whole()


@nemesis("eligible, and back without its tail", lambda setting: apart(setting) and bool(setting.cached), weight=2)
async def eligible_and_back(context: NemesisContext) -> None:
    """Replicas leave below the minimum, so that the last one to leave is eligible; it comes back without what was
    not synced, and is not any more (KIP-966). Then the last one in sync stops: no replica leads that may lack
    anything."""
    number = context.any_partition()
    last = context.leader(number)
    one, other = context.followers(number)
    await context.faults.stop(one)
    await context.wait(0.2, 1.0)
    context.faults.power_loss(other)
    await context.wait(0.0, 1.0)
    context.faults.split([other], context.others(context.brokers, other))
    context.start(other)
    await context.until(lambda: context.replicas.is_current(other), 4.0)
    await context.faults.stop(last)
    await context.wait(0.0, 1.5)
    context.heal_network()
    for node_id in context.chance.sample([one, last], 2):
        context.start(node_id)
        await context.wait(0.0, 1.0)
    await context.whole()
