"""The patterns that members subscribe by: resolved when they come, again when topics come, and now and then.

Kafka resolves on another thread and gives the group its epoch later; RE2 is quick enough to do it with the heartbeat.

Always true: every pattern that a member subscribes by is resolved, and no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.groups import regex as expressions
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_draft import GroupDraft
from strandline.groups.consumer.group_records import regex_tombstone
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.groups.records import ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard

REFRESH_MIN_S = 10.0
"""However much the metadata changes, a group's patterns are not matched against all topics more often than this."""


def is_refresh_due(group: ConsumerGroup, refresh_interval_ms: int, now_s: float) -> bool:
    since_s = now_s - group.regex_refreshed_s
    return since_s >= (REFRESH_MIN_S if group.regex_refresh_requested else refresh_interval_ms / 1000)


def update(
    shard: GroupShard, draft: GroupDraft, old: ConsumerGroupMember, new: ConsumerGroupMember, at: Moment
) -> bool:
    """Resolve what is new, forget what no member subscribes by.
    Whether a pattern that was there stands for other topics now.
    """
    group_id = draft.group.group_id
    if old.subscribed_topic_regex != new.subscribed_topic_regex:
        if new.subscribed_topic_regex and new.subscribed_topic_regex not in draft.origin.subscribed_regular_expressions:
            expressions.check(new.subscribed_topic_regex)
            regexes_max = shard.dependencies.config.group_consumer_max_regexes
            if len(draft.group.subscribed_regular_expressions) > regexes_max:
                raise KafkaError(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"The members of the group subscribe by {regexes_max} different patterns already, which is the most "
                    "(group.consumer.max.regexes).",
                )
        for regex in list(draft.group.resolved_regular_expressions):
            if regex not in draft.group.subscribed_regular_expressions:
                draft.add(regex_tombstone(group_id, regex))
    group = draft.group
    if not group.subscribed_regular_expressions:
        return False
    refresh = is_refresh_due(draft.origin, shard.dependencies.config.group_consumer_regex_refresh_interval_ms, at.now)
    if refresh:
        draft.origin.regex_refreshed_s, draft.origin.regex_refresh_requested = at.now, False
    stale = [
        regex
        for regex in group.subscribed_regular_expressions
        if refresh or regex not in group.resolved_regular_expressions
    ]
    changed = False
    for regex, topics in expressions.resolve(stale, shard.dependencies.image).items():
        known = group.resolved_regular_expressions.get(regex)
        if known is None or known.topics != topics:
            draft.add(_resolved_record(group_id, regex, topics, shard.dependencies.image.end_offset, at.wall_ms))
            changed = True
    return changed


def _resolved_record(
    group_id: str, regex: str, topics: frozenset[str], version: int, timestamp_ms: int
) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(topics=tuple(sorted(topics)), version=version, timestamp=timestamp_ms),
    )
