"""Members of the group that die, stand still, come and go, change their protocol, and whose topics change."""

from __future__ import annotations

from strandline.client.aio import Admin
from strandline.client.flow.descriptions import NewTopic
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.groups.plan import CLASSIC, CONSUMER, GROUPED
from strandline.histories.nemeses.context import OPERATION_MS, NemesisContext
from strandline.histories.nemeses.moves import write
from strandline.histories.nemeses.nemesis import GROUPS, nemesis
from strandline.histories.setting import HistorySetting

SIDE = "beside"
"""A topic that the group has for a while."""
STILL_THERE = (ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
"""Why a deletion is refused and surely did nothing."""


def has_group(setting: HistorySetting) -> bool:
    return setting.group is not None


def has_several(setting: HistorySetting) -> bool:
    return setting.group is not None and setting.group.members >= 2


def has_static(setting: HistorySetting) -> bool:
    return setting.group is not None and setting.group.is_static


def has_dynamic(setting: HistorySetting) -> bool:
    return setting.group is not None and not setting.group.is_static


@nemesis("members killed", has_group, weight=2, family=GROUPS)
async def members_killed(context: NemesisContext) -> None:
    """Members die with what they had not committed, others stand still; they are back soon, or when their session is
    over."""
    for _ in range(2):
        member, other = context.chance.choice(context.group.members), context.chance.choice(context.group.members)
        context.faults.kill_member(member)
        if context.either():
            context.faults.pause_member(other)
        await context.wait(0.1, 1.5 * context.group.plan.session_s)
        other.machine.resume()
        member.start()
        await context.wait(0.0, 3.0)
    await context.settled()


@nemesis("a member paused past its session", has_several, weight=2, family=GROUPS)
async def member_paused(context: NemesisContext) -> None:
    """Others take over what it had; it wakes up, commits what it thinks is its own, and is refused."""
    await context.settled()
    group = context.group
    member = context.chance.choice(group.members)
    metadata, keys = member.metadata, member.owned
    if context.faults.pause_member(member):
        others = [each for each in group.wanted if each is not member]
        taken = await context.until(
            lambda: sorted(key for each in others for key in each.owned) == sorted(group.keys()),
            4 * group.plan.session_s,
        )
        await context.written()
        if taken and keys and metadata is not None:
            await group.commit_as(metadata, keys, 1)
    member.machine.resume()
    await context.settled()


@nemesis("members paused for a moment", has_group, weight=2, family=GROUPS)
async def paused_for_a_moment(context: NemesisContext) -> None:
    """Members stand still for about as long as their session lasts, while the coordinator or another of them dies."""
    for _ in range(2):
        member, other = context.chance.choice(context.group.members), context.chance.choice(context.group.members)
        context.faults.pause_member(member)
        coordinator = context.coordinator()
        if context.either():
            context.faults.kill(coordinator)
        if context.either():
            context.faults.kill_member(other)
        await context.wait(0.5, 1.3 * context.group.plan.session_s)
        member.machine.resume()
        other.start()
        context.start(coordinator)
        await context.wait(0.0, 2.0)
    await context.whole()
    await context.settled()


@nemesis("a static member restarts", has_static, weight=2, family=GROUPS)
async def static_member(context: NemesisContext) -> None:
    """Within its session a static member is back as it was: the generation is the same, and no other member notices."""
    for _ in range(2):
        await context.whole()
        await context.settled()
        with context.no_noise():
            generation = context.groups.newest_generation
            member = context.chance.choice(context.group.members)
            if member.protocol == CLASSIC:
                context.faults.kill_member(member)
            else:
                await member.leave()  # killed, it would have to wait until its session is over (UNRELEASED_INSTANCE_ID)
            await context.wait(0.1, 0.4 * context.group.plan.session_s)
            member.start()
            await context.settled()
            if context.groups.newest_generation != generation:
                context.problem(
                    "static-member", f"{member.name} came back, and the group rebalanced after {generation}"
                )
            else:
                context.group.count("static member back")


@nemesis(
    "a commit from before the rebalance",
    lambda setting: has_dynamic(setting) and has_several(setting),
    weight=3,
    family=GROUPS,
)
async def commit_from_before(context: NemesisContext) -> None:
    """A member that is still there commits as it was before a rebalance, for what it had then: another one has it
    now, or had it in between."""
    group = context.group
    await context.settled()
    guest = context.chance.choice(group.members)
    await guest.leave()
    await context.settled()
    before = [(member.metadata, member.owned) for member in group.members if member is not guest]
    guest.start()
    await context.settled()
    moved = [(metadata, [key for key in keys if key in guest.owned]) for metadata, keys in before]
    for is_gone in (False, True):
        if is_gone:
            await guest.leave()
            await context.settled()
        for metadata, keys in moved:
            if metadata is not None and keys:
                await group.commit_as(metadata, keys, 1)
    guest.start()
    await context.settled()


@nemesis("two of one instance id", has_static, weight=3, family=GROUPS)
async def two_of_one_instance(context: NemesisContext) -> None:
    """A static member is replaced by another process of its name; the former is fenced, whatever it commits."""
    for _ in range(2):
        await context.settled()
        member = context.chance.choice(context.group.members)
        metadata, keys = member.metadata, member.owned
        context.faults.kill_member(member)
        await context.wait(0.1, 0.5)
        member.start()
        await context.settled()
        if metadata is not None and keys:
            await context.group.commit_as(metadata, keys, 1)


@nemesis("members come and go", has_group, weight=2, family=GROUPS)
async def come_and_go(context: NemesisContext) -> None:
    """Members leave in order and join again, several at once, one more than there were."""
    group = context.group
    if len(group.members) < 5:
        group.add().start()
    for _ in range(2):
        leaving = context.chance.sample(group.members, context.chance.randint(1, max(1, len(group.members) - 1)))
        for member in leaving:
            member.is_wanted = False
        await context.wait(0.0, 6.0)
        for member in leaving:
            await member.leave()
            member.start()
            await context.wait(0.0, 0.5)
        await context.wait(0.0, 3.0)
    await context.settled()


@nemesis("the group's topic grows", has_group, family=GROUPS)
async def topic_grows(context: NemesisContext) -> None:
    """Its topic gets more partitions while a member dies: each of them gets an owner."""
    topic = context.replicas.image.topics[GROUPED]
    count = len(topic.partitions) + context.chance.randint(1, 2)
    await context.operate(lambda admin: admin.create_partitions({GROUPED: count}, timeout_ms=OPERATION_MS))
    if context.either():
        member = context.chance.choice(context.group.members)
        context.faults.kill_member(member)
        await context.wait(0.1, 2.0)
        member.start()
    await context.settled()


@nemesis("the group's topics come and go", has_group, weight=2, family=GROUPS)
async def topics_come_and_go(context: NemesisContext) -> None:
    """A second topic is subscribed to, deleted and made anew, and given up again: offsets of the one are not those
    of the other."""
    group, replicas = context.group, context.setting.replicas
    before = group.topics

    async def make(admin: Admin) -> None:
        await admin.create_topics([NewTopic(SIDE, 2, replicas)], timeout_ms=OPERATION_MS)

    await context.operate(make)
    group.topics = (*before, SIDE)
    for _ in range(2):
        # Something to commit, so that its offsets are not those of a topic where nothing was.
        await context.operate(lambda admin: write(context, admin, SIDE))
        await context.wait(1.0, 5.0)
        coordinator = context.coordinator()
        if context.setting.replicas >= 3 and context.either():
            context.faults.kill(
                coordinator
            )  # so that no coordinator looks while the one topic goes and the other comes
        if context.faults.inject("topic deleted", SIDE, lambda: None):
            await context.operate(lambda admin: admin.delete_topics([SIDE], timeout_ms=OPERATION_MS))
            await context.operate(make)
        context.start(coordinator)
        await context.wait(0.5, 2.0)
    group.topics = before
    await context.operate(lambda admin: admin.delete_topics([SIDE], timeout_ms=OPERATION_MS))
    await context.settled()


@nemesis("the group is deleted", has_group, family=GROUPS)
async def group_deleted(context: NemesisContext) -> None:
    """All members leave, and the group or its offsets are deleted: those who join then begin at the beginning."""
    group = context.group
    for member in group.members:
        await member.leave()
    for member in group.members:
        if group.plan.is_static:
            member.kill()
    keys = group.keys()
    is_whole_group = context.either()

    async def delete(admin: Admin) -> None:
        if is_whole_group:
            answers: list[KafkaError | None] = list((await admin.delete_groups([group.plan.group_id])).values())
        else:
            answers = list((await admin.delete_group_offsets(group.plan.group_id, keys)).values())
        refused = [answer for answer in answers if answer is not None]
        if any(answer.code in STILL_THERE for answer in refused):
            # Static members stay in the group: it goes on where it was, and has nothing to commit if it is through.
            group.history.committed.update(before)
        group.count("deletion refused" if refused else "group deleted" if is_whole_group else "offsets deleted")

    # What is asked for may be done although the answer is lost.
    before = dict(group.history.committed)
    group.history.committed.clear()
    await context.operate(delete)
    await context.wait(0.0, 1.0)
    for member in group.members:
        member.start()
    await context.settled()


@nemesis("members change their protocol", has_dynamic, weight=2, family=GROUPS)
async def protocol_changes(context: NemesisContext) -> None:
    """One member after the other comes back with the other protocol, and perhaps the coordinator dies meanwhile; and
    back."""
    group = context.group
    await context.settled()
    for _ in range(context.chance.choice((1, 2))):
        target = CONSUMER if group.members[0].protocol == CLASSIC else CLASSIC
        for member in group.members:
            await member.leave()
            member.protocol = target
            member.start()
            if context.chance.random() < 0.3:
                coordinator = context.coordinator()
                context.faults.kill(coordinator)
                await context.wait(0.1, 1.0)
                context.start(coordinator)
            await context.wait(0.0, 4.0)
        await context.whole()
        await context.settled()
        group.count(f"now {target}")
