"""Whatever happens to a partition, in whatever order, what is always true stays true."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.partition_change import RECOVERING
from strandline.controller.reassignments import is_reassigning
from strandline.errors import KafkaError
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.metadata.records import NO_LEADER

from .conftest import after
from .partitions import image_of, line_of, partition_of, records_of

IDS = "12345"
BROKER = st.sampled_from(IDS)
SOME = st.lists(BROKER, min_size=1, max_size=4, unique=True).map("".join)
BROKERS = st.sampled_from(["fence", "unfence", "unfence", "stop", "restart", "crash"])
ISR = st.builds("isr {}".format, SOME)
REASSIGN = st.builds("reassign {}".format, SOME)
EVENTS = st.one_of(
    st.builds("{} {}".format, BROKERS, BROKER).map(lambda event: [event]),
    ISR.map(lambda event: [event]),
    st.lists(ISR, max_size=2).flatmap(lambda isrs: REASSIGN.map(lambda event: [event, *isrs])),
    st.sampled_from(["cancel", "elect preferred", "elect unclean", "periodic", "balance"]).map(lambda event: [event]),
)
POLICIES = st.builds(ElectionPolicy, st.integers(1, 3), st.booleans(), st.booleans())


def possible(image: MetadataImage, event: str) -> str | None:
    """The event as a controller may be told of it. A leader asks for replicas that are there; what is so already is no news."""
    what, _, rest = event.partition(" ")
    if what == "stop":
        return event if image.brokers[int(rest)].active else None
    if what in ("fence", "unfence"):
        return event if image.brokers[int(rest)].fenced == (what == "unfence") else None
    if what == "isr":
        partition = partition_of(image)
        wanted = {i for i in map(int, rest) if i in partition.replicas and image.brokers[i].active}
        return f"isr {''.join(map(str, sorted(wanted | {partition.leader})))}" if partition.has_leader else None
    return event


def check(image: MetadataImage, rules: ElectionPolicy) -> None:
    partition = partition_of(image)
    replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.elr)
    assert len(replicas) == len(partition.replicas) == len(partition.directories)
    assert len(isr) == len(partition.isr)
    # I5, with the one exception where there is no ELR to keep the name of the last.
    unfit = {member for member in isr if not image.brokers[member].active}
    assert not unfit or (not rules.elr_enabled and isr == unfit and len(isr) == 1 and not partition.has_leader), "I5"
    assert isr | elr <= replicas, "I6"
    assert not isr & elr, "I6"
    assert not elr or len(isr) < min(rules.default_min_isr, len(replicas)), "I6"
    assert isr or rules.elr_enabled
    if partition.has_leader:
        assert partition.leader in isr
        assert not partition.last_known_elr
        assert partition.leader_recovery_state != RECOVERING or len(isr) == 1, "B9"
    adding, removing = set(partition.adding_replicas), set(partition.removing_replicas)
    assert adding | removing <= replicas
    assert not adding & removing


def check_step(
    before: PartitionImage, now: PartitionImage, event: str, rules: ElectionPolicy, last_leader: int
) -> None:
    what, _, rest = event.partition(" ")
    asked = {int(digit) for digit in rest} if what == "isr" else set(before.isr)
    enough = min(rules.default_min_isr, len(now.replicas))
    elected = now.leader != before.leader
    removed = not set(before.replicas) <= set(now.replicas)
    unclean = elected and now.has_leader and now.leader not in {*before.isr, *before.elr, *asked}

    assert now.partition_epoch == before.partition_epoch + (now != before), "B6"
    assert now.leader_epoch - before.leader_epoch == (elected or removed), "B6"
    if elected and now.has_leader:
        assert unclean == (now.leader_recovery_state == RECOVERING) or before.leader_recovery_state == RECOVERING, "B9"
        assert not unclean or rules.default_unclean or event == "elect unclean" or now.leader == last_leader, "B9"
    if rules.elr_enabled:
        lost = {int(rest)} if what == "crash" else set()
        eligible = {*before.isr, *before.elr} - set(now.isr) - lost
        assert set(now.elr) == (set() if unclean or len(now.isr) >= enough else eligible & set(now.replicas)), "B10"
        assert now.isr or now.elr or now.last_known_elr == (last_leader,), "I10"
    if what in ("reassign", "cancel") and not elected:
        assert set(now.isr) <= set(before.isr), "B15: a reassignment adds nobody to the ISR"
    if what in ("reassign", "isr") and removed:
        assert len(now.isr) >= min(len(asked), enough), "B15: nor does its end leave too few"


def heal(image: MetadataImage, rules: ElectionPolicy) -> MetadataImage:
    """All brokers are back, and every replica catches up."""
    for broker_id in IDS:
        for event in (f"restart {broker_id}", f"unfence {broker_id}"):
            image = after(image, records_of(image, event, rules))
            check(image, rules)
    everyone = "".join(map(str, partition_of(image).replicas))
    return after(image, records_of(image, f"isr {everyone}", rules))


def flat(events: list[list[str]]) -> list[str]:
    return [event for some in events for event in some]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(EVENTS, min_size=10, max_size=30).map(flat),
    POLICIES,
    st.lists(BROKER, min_size=1, max_size=3, unique=True).map("".join),
)
def test_b6_b7_b10_b15_i5_i6_i10_hold_whatever_happens(events: list[str], rules: ElectionPolicy, replicas: str) -> None:
    image = image_of(f"{replicas} isr={replicas} leader={replicas[0]}")
    last_leader = partition_of(image).leader
    told = [line_of(partition_of(image))]
    for wanted in events:
        event = possible(image, wanted)
        if event is None:
            continue
        before = partition_of(image)
        try:
            image = after(image, records_of(image, event, rules))
        except KafkaError as error:
            told.append(f"{event} -> {error.code.name}")
            continue
        now = partition_of(image)
        told.append(f"{event} -> {line_of(now)}")
        try:
            check(image, rules)
            check_step(before, now, event, rules, last_leader)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), str(rules), *told])) from error
        if now.leader != NO_LEADER:
            last_leader = now.leader
    healed = partition_of(heal(image, rules))
    assert set(healed.isr) == set(healed.replicas), told
    assert not is_reassigning(healed), told
