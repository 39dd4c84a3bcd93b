"""Transactions whose coordinator, leaders or producers fail between two of their steps."""

from __future__ import annotations

from strandline.client.aio import Admin
from strandline.client.flow.descriptions import ElectionType, NewTopic
from strandline.histories.exchanges import WRITE_TXN_MARKERS, CoordinatorExchange
from strandline.histories.nemeses.context import OPERATION_MS, NemesisContext
from strandline.histories.nemeses.nemesis import TRANSACTIONS, nemesis, transacting
from strandline.histories.transactions.plan import LEDGER, PASSING
from strandline.histories.transactions.requests import next_request
from strandline.ids import TopicPartition
from strandline.metadata.image import PartitionImage
from strandline.node.coordinator.transaction_topic import TRANSACTION_STATE
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.states import TransactionState

STEP_WITHIN_S = 6.0
TIMES = 3
HOUR_MS = 3_600_000
JUMPS_MS = (-HOUR_MS, HOUR_MS)


def _coordinator(context: NemesisContext) -> int:
    """Of some transactional id; any broker if there is none."""
    topic = context.replicas.image.topics.get(TRANSACTION_STATE)
    leaders = [] if topic is None else [state.leader for state in topic.partitions if state.leader >= 0]
    return context.chance.choice(leaders or context.brokers)


def _prepared(context: NemesisContext) -> list[TransactionMetadata]:
    context.transactions.refresh()
    return [each for each in context.transactions.states.values() if each.state.is_prepared]


def _is_prepared(context: NemesisContext) -> bool:
    return bool(_prepared(context))


def _unwritten(context: NemesisContext) -> list[PartitionImage]:
    """Partitions of the ledger that are part of an open transaction, and whose leader has nothing of it yet."""
    seen = context.transactions
    seen.refresh()
    topic = context.replicas.image.topics[LEDGER]
    found = []
    for each in seen.states.values():
        for name, index in sorted(each.partitions if not each.state.may_expire else ()):
            if name == LEDGER:
                state = topic.partitions[index]
                known = seen.logs.get((state.leader, (topic.topic_id, index)))
                if known is None or each.producer_id not in known.open:
                    found.append(state)
    return found


@nemesis("transaction coordinator killed", transacting, weight=2, family=TRANSACTIONS)
async def coordinator_killed(context: NemesisContext) -> None:
    """The coordinator dies while a transaction is open or ending, and perhaps a clock jumps by an hour: the next one
    knows it, and ends it."""
    with context.haste():
        for _ in range(TIMES):
            await context.until_soon(lambda: _is_prepared(context), context.chance.uniform(0.2, STEP_WITHIN_S))
            coordinator = _coordinator(context)
            if context.chance.random() < 0.4:
                context.faults.clock_jump(context.chance.choice(context.brokers), context.chance.choice(JUMPS_MS))
            context.faults.dies(coordinator, power=context.chance.random() < 0.3)
            await context.wait(0.2, 3.0)
            context.start(coordinator)
            await context.wait(0.2, 3.0)
    await context.whole()


@nemesis("leader killed between addition and append", transacting, weight=2, family=TRANSACTIONS)
async def leader_killed_before_append(context: NemesisContext) -> None:
    """A partition is part of a transaction, and its leader dies before it has written anything of it."""
    with context.haste():
        for _ in range(TIMES):
            await context.until_soon(lambda: bool(_unwritten(context)), STEP_WITHIN_S)
            found = _unwritten(context)
            leader = found[0].leader if found and found[0].leader >= 0 else context.chance.choice(context.brokers)
            context.faults.kill(leader)
            await context.wait(0.2, 3.0)
            context.start(leader)
            await context.wait(0.2, 2.0)
    await context.whole()


@nemesis("page cache lost under a decision", transacting, family=TRANSACTIONS)
async def page_cache_lost(context: NemesisContext) -> None:
    """A decision is written and its markers are not all there: the coordinator's host goes dark."""
    with context.haste():
        for _ in range(2):
            await context.until_soon(lambda: _is_prepared(context), STEP_WITHIN_S)
            coordinator = _coordinator(context)
            context.faults.power_loss(coordinator)
            await context.wait(0.5, 4.0)
            context.start(coordinator)
            await context.whole()


@nemesis("markers delayed", transacting, weight=2, family=TRANSACTIONS)
async def markers_delayed(context: NemesisContext) -> None:
    """The coordinator does not reach the leaders for a while, so that its markers come late, or twice; now and then it
    is deposed meanwhile."""
    with context.haste():
        for _ in range(TIMES):
            coordinator = _coordinator(context)
            for broker_id in context.others(context.brokers, coordinator):
                context.faults.cut_one_way(coordinator, broker_id)
            await context.wait(0.3, 3.0)
            if context.chance.random() < 0.3:
                context.faults.kill(coordinator)
                context.start(coordinator)
            context.heal_network()
            await context.wait(0.3, 2.0)
    await context.whole()


@nemesis("producer paused past its timeout", transacting, family=TRANSACTIONS)
async def producer_paused(context: NemesisContext) -> None:
    """A producer stands still in its transaction until the coordinator has aborted it, and goes on."""
    transactions = context.load.transactions
    assert transactions is not None, "a nemesis about transactions fits a setting that has them"
    with context.haste():
        for _ in range(2):
            writer = context.chance.choice(transactions.writers)
            context.faults.pause_client(writer.machine)
            await context.wait(0.5, 1.3 * transactions.plan.timeout_s + 1.5)
            writer.machine.resume()
            await context.wait(0.2, 2.0)
    await context.whole()


@nemesis("markers of a former coordinator", transacting, weight=2, family=TRANSACTIONS)
async def former_coordinator(context: NemesisContext) -> None:
    """A coordinator's markers are on their way when another broker is elected to coordinate: it sends its own, and
    those of the first arrive after them."""
    with context.haste():
        for _ in range(TIMES):
            sent = await next_request(context.transactions, _brings_markers, STEP_WITHIN_S)
            if sent is None:
                continue
            context.faults.delay_request(sent, context.chance.uniform(0.5, 2.5), noise=False)
            await _elect_another(context)
            await context.wait(0.5, 2.0)
    await context.whole()


def _brings_markers(exchange: CoordinatorExchange) -> bool:
    return exchange.api_key == WRITE_TXN_MARKERS and exchange.answered_at is None


async def _elect_another(context: NemesisContext) -> None:
    """Every partition of `__transaction_state` is led by another of its replicas, on request."""
    orders: dict[TopicPartition, list[int]] = {}
    for index, state in enumerate(context.replicas.image.topics[TRANSACTION_STATE].partitions):
        others = context.others(state.isr, state.leader)
        if others:
            first = context.chance.choice(others)
            orders[TRANSACTION_STATE, index] = [first, *context.others(state.replicas, first)]

    async def elect(admin: Admin) -> None:
        await admin.alter_partition_reassignments(orders, timeout_ms=OPERATION_MS)
        await admin.elect_leaders(ElectionType.PREFERRED, list(orders), timeout_ms=OPERATION_MS)

    if orders and context.faults.inject("election on request", f"preferred of {list(orders)}", lambda: None):
        await context.operate(elect)


@nemesis("transaction coordinator cut off", transacting, family=TRANSACTIONS)
async def coordinator_cut_off(context: NemesisContext) -> None:
    """The coordinator is alone with its clients, who ask again and again: what it can't commit it does not confirm."""
    with context.haste():
        for _ in range(2):
            await context.until_soon(lambda: bool(_unwritten(context)), STEP_WITHIN_S)
            coordinator = _coordinator(context)
            context.faults.split([coordinator], context.others(context.nodes, coordinator))
            await context.wait(1.0, 1.0 + 2.5 * _request_s(context))
            context.heal_network()
            await context.wait(0.5, 2.0)
    await context.whole()


def _request_s(context: NemesisContext) -> float:
    """How long clients wait for an answer."""
    plan = context.setting.transactions
    assert plan is not None, "a nemesis about transactions fits a setting that has them"
    return plan.request_ms / 1000


@nemesis("a topic is deleted in a transaction", transacting, weight=2, family=TRANSACTIONS)
async def topic_deleted(context: NemesisContext) -> None:
    """A topic that open transactions have written to is deleted, and perhaps made again: they end nevertheless."""
    load = context.load.transactions
    assert load is not None, "a nemesis about transactions fits a setting that has them"
    with context.haste():
        for _ in range(2):
            topic = NewTopic(PASSING, 1, context.setting.replicas, configs={"min.insync.replicas": "1"})
            await context.operate(lambda admin: admin.create_topics([topic], timeout_ms=OPERATION_MS))  # noqa: B023
            load.is_passing = True
            await context.until_soon(lambda: _writes_to(context, PASSING), STEP_WITHIN_S)
            load.is_passing = False
            if context.faults.inject("topic deleted", PASSING, lambda: None):
                await context.operate(lambda admin: admin.delete_topics([PASSING], timeout_ms=OPERATION_MS))
            await context.wait(0.0, 3.0)
    await context.whole()


def _writes_to(context: NemesisContext, topic: str) -> bool:
    """An open transaction has records there."""
    seen, known = context.transactions, context.replicas.image.topics.get(topic)
    seen.refresh()
    if known is None or context.replicas.committed_end(topic, 0) == 0:
        return False
    return any(
        each.state is TransactionState.ONGOING and (topic, 0) in each.partitions for each in seen.states.values()
    )


@nemesis("restarted with a transaction open", transacting, weight=2, family=TRANSACTIONS)
async def restarted_while_open(context: NemesisContext) -> None:
    """A broker stops in order, or dies, while transactions are open in its replicas, and stay so because their producers
    stand still: it has them open again when it is back, from its snapshots."""
    load = context.load.transactions
    assert load is not None, "a nemesis about transactions fits a setting that has them"
    with context.haste():
        for _ in range(2):
            await context.until_soon(lambda: bool(_having_open(context)), STEP_WITHIN_S)
            broker_id = context.chance.choice(_having_open(context) or context.brokers)
            for writer in load.writers:
                context.faults.pause_client(writer.machine)
            if context.chance.random() < 0.7:
                await context.faults.stop(broker_id)
            else:
                context.faults.kill(broker_id)
            context.start(broker_id)
            await context.wait(0.5, 2.0)
            load.heal()
            await context.wait(0.5, 2.0)
    await context.whole()


def _having_open(context: NemesisContext) -> list[int]:
    """Brokers with open transactions in their logs, and their processes there."""
    return sorted(
        {place.node_id for place, known in context.transactions.places() if known.open} & set(context.cluster.up)
    )
