"""Stories of offsets as plain text: what is done above the line, what is to be seen below it.

set offsets.retention.minutes=60   the broker's configuration; first, if at all
topic t 2                          there is a topic, of so many partitions; again after it was deleted: another one
drop t | vanish t                  the topic is deleted; it is, while there is no coordinator
commit g t-0=5 …                   OffsetCommit; version=…, member=…, generation=… (or epoch), metadata=…,
                                   epoch=… (leader), retention=…
commit-id g t/1-0=5 …              by the id of the first topic that was named t
txn-commit 7/0 g t-0=5 …           TxnOffsetCommit of a producer id and epoch; options as above, and instance=…
fetch g t-0 … | fetch g            OffsetFetch, of some or all; version=…, member=…, epoch=…, stable
fetch-id g t/1-0 …                 by id
pending 7 g t-0=5                  a producer's transaction commits an offset
end 7 commit | abort               the transaction ends
classic g m1 t …                   a classic group of one consumer with such a subscription, generation 3; without a
                                   member: Empty
consumer g m1 5 t …                a group of the consumer protocol with one member, in epoch 5
pass 61                            minutes pass
expire                             offsets and groups that have expired go
delete g t-0 …                     OffsetDelete
delete-group g                     DeleteGroups
list [states=… types=…]            ListGroups
reload                             another coordinator takes over
refuse NOT_COORDINATOR             nothing can be written any more, for this reason
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from strandline.ids import Uuid
from strandline.wire import messages
from tests.unit.groups.shell import Shell

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))
OFFSET_COMMIT, OFFSET_FETCH, TXN_OFFSET_COMMIT, OFFSET_DELETE = 8, 9, 28, 47
MINUTE_MS = 60_000


class Story:
    def __init__(self) -> None:
        self.shell = Shell()
        self.lines: list[str] = []
        self.ids: dict[str, Uuid] = {}
        """Of every topic there was: t/1, t/2, …"""

    def tell(self, text: str) -> list[str]:
        for line in text.splitlines():
            words = line.partition("#")[0].split()
            if words:
                verb = words[0].replace("-", "_")
                try:
                    getattr(self, f"do_{verb}")(*words[1:])
                except KafkaError as error:
                    self.lines.append(f"{words[0]}: {error.code.name}")
        return self.lines

    def say(self, verb: str, partitions: list[str]) -> None:
        self.lines.append(f"{verb}: {' '.join(partitions) or 'nothing'}")

    # The world

    def do_set(self, *settings: str) -> None:
        self.shell = Shell(
            **{name.replace(".", "_"): text for name, _, text in (each.partition("=") for each in settings)}
        )

    def do_topic(self, name: str, partitions: str) -> None:
        topic = self.shell.dependencies.create(name, int(partitions))
        number = sum(known.startswith(f"{name}/") for known in self.ids) + 1
        self.ids[f"{name}/{number}"] = topic.topic_id

    def do_drop(self, name: str) -> None:
        topic = self.shell.dependencies.delete(name)
        gone = frozenset({(topic.name, topic.topic_id)})
        self.shell.carry_out(self.shell.shard.metadata_changed(self.shell.dependencies.image, gone, self.shell.at))

    def do_vanish(self, name: str) -> None:
        self.shell.dependencies.delete(name)

    def do_pass(self, minutes: str) -> None:
        self.shell.elapse(round(float(minutes) * MINUTE_MS))

    def do_reload(self) -> None:
        self.shell.reload()

    def do_refuse(self, code: str) -> None:
        self.shell.write_error = ErrorCode[code]

    # Groups

    def do_classic(self, group_id: str, member_id: str = "", *topics: str) -> None:
        subscription = messages.data("ConsumerProtocolSubscription")(topics=list(topics))
        body = b"\0\0" + messages.encode_data("ConsumerProtocolSubscription", 0, subscription)
        member = MemberMetadata(
            member_id=member_id,
            client_id="c",
            client_host="/h",
            rebalance_timeout=60_000,
            session_timeout=45_000,
            subscription=body,
            assignment=b"",
        )
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=3,
            protocol="range" if member_id else None,
            leader=member_id or None,
            current_state_timestamp=self.shell.at.wall_ms,
            members=(member,) if member_id else (),
        )
        self.shell.write([CoordinatorRecord(GroupMetadataKey(group=group_id), value)])

    def do_consumer(self, group_id: str, member_id: str, epoch: str, *topics: str) -> None:
        member = ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=topics,
            subscribed_topic_regex=None,
            rebalance_timeout_ms=60_000,
            server_assignor=None,
        )
        assignment = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=int(epoch),
            previous_member_epoch=int(epoch) - 1,
            state=0,
            assigned_partitions=(),
            partitions_pending_revocation=(),
        )
        target = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=int(epoch))
        member_key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
        assignment_key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        self.shell.write(
            [
                CoordinatorRecord(member_key, member),
                CoordinatorRecord(
                    ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(epoch=int(epoch))
                ),
                CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), target),
                CoordinatorRecord(assignment_key, assignment),
            ]
        )

    def do_list(self, *options: str) -> None:
        asked = dict(option.split("=") for option in options)
        states, types = (frozenset(filter(None, asked.get(name, "").split(","))) for name in ("states", "types"))
        listed = self.shell.shard.list_groups(states, types, Caller("c", "/h", 5))
        self.say(
            "list",
            [f"{g.group_id}({g.group_type},{g.group_state},{g.protocol_type or '-'})" for g in listed],
        )

    def do_delete_group(self, group_id: str) -> None:
        records = self.shell.shard.delete_group(group_id, self.shell.at)
        self.shell.carry_out(CoordinatorResult(records))
        self.lines.append(f"delete-group: {len(records)} records")

    # Offsets

    def do_commit(self, group_id: str, *words: str, by_id: bool = False) -> None:
        offsets, options = _told(words)
        version = int(options.get("version", 10 if by_id else 9))
        request_class = messages.request(OFFSET_COMMIT)
        topics = []
        for topic, partitions in groupby(offsets.items(), key=lambda item: item[0].rpartition("-")[0]):
            asked = [
                request_class.OffsetCommitRequestPartition(
                    partition_index=int(name.rpartition("-")[2]),
                    committed_offset=int(offset),
                    committed_leader_epoch=int(options.get("epoch", -1)),
                    committed_metadata=options.get("metadata"),
                )
                for name, offset in partitions
            ]
            named = {"topic_id": self.ids[topic]} if by_id else {"name": topic}
            topics.append(request_class.OffsetCommitRequestTopic(partitions=asked, **named))
        request = request_class(
            group_id=group_id,
            member_id=options.get("member", ""),
            generation_id_or_member_epoch=int(options.get("generation", -1)),
            topics=topics,
            **({"retention_time_ms": int(options["retention"])} if "retention" in options else {}),
        )
        request = messages.decode_request(
            OFFSET_COMMIT, version, messages.encode_request(OFFSET_COMMIT, version, request)
        )
        response = self.shell.ask(self.shell.shard.commit_offsets, request, version)
        response = messages.decode_response(
            OFFSET_COMMIT, version, messages.encode_response(OFFSET_COMMIT, version, response)
        )
        self.say("commit-id" if by_id else "commit", self._codes(response))

    def do_txn_commit(self, producer: str, group_id: str, *words: str) -> None:
        offsets, options = _told(words)
        version = int(options.get("version", 5))
        producer_id, _, epoch = producer.partition("/")
        request_class = messages.request(TXN_OFFSET_COMMIT)
        topics = []
        for topic, partitions in groupby(offsets.items(), key=lambda item: item[0].rpartition("-")[0]):
            asked = [
                request_class.TxnOffsetCommitRequestPartition(
                    partition_index=int(name.rpartition("-")[2]),
                    committed_offset=int(offset),
                    committed_leader_epoch=int(options.get("epoch", -1)),
                    committed_metadata=options.get("metadata"),
                )
                for name, offset in partitions
            ]
            topics.append(request_class.TxnOffsetCommitRequestTopic(name=topic, partitions=asked))
        request = request_class(
            transactional_id="tid",
            group_id=group_id,
            producer_id=int(producer_id),
            producer_epoch=int(epoch),
            member_id=options.get("member", ""),
            group_instance_id=options.get("instance"),
            generation_id=int(options.get("generation", -1)),
            topics=topics,
        )
        sent = messages.encode_request(TXN_OFFSET_COMMIT, version, request)
        request = messages.decode_request(TXN_OFFSET_COMMIT, version, sent)
        commit = self.shell.shard.commit_txn_offsets
        response = self.shell.ask(lambda request, *rest: commit(request, None, *rest), request, version)
        sent = messages.encode_response(TXN_OFFSET_COMMIT, version, response)
        self.say("txn-commit", self._codes(messages.decode_response(TXN_OFFSET_COMMIT, version, sent)))

    def do_commit_id(self, group_id: str, *words: str) -> None:
        self.do_commit(group_id, *words, by_id=True)

    def do_fetch(self, group_id: str, *words: str, by_id: bool = False) -> None:
        asked, options = _told(words)
        version = int(options.get("version", 10 if by_id else 9))
        request_class, response_class = messages.request(OFFSET_FETCH), messages.response(OFFSET_FETCH)
        stable = "stable" in asked
        asked.pop("stable", None)
        topics = [
            request_class.OffsetFetchRequestTopics(
                **({"topic_id": self.ids[topic]} if by_id else {"name": topic}),
                partition_indexes=[int(name.rpartition("-")[2]) for name in names],
            )
            for topic, names in groupby(asked, key=lambda name: name.rpartition("-")[0])
        ]
        group = request_class.OffsetFetchRequestGroup(
            group_id=group_id,
            member_id=options.get("member"),
            member_epoch=int(options.get("epoch", -1)),
            topics=topics or None,
        )
        caller = Caller("c", "/h", version)
        found = self.shell.shard.fetch_offsets(group, stable, caller, self.shell.at)
        sent = messages.encode_response(OFFSET_FETCH, version, response_class(groups=[found]))
        (group,) = messages.decode_response(OFFSET_FETCH, version, sent).groups
        assert group.group_id == group_id
        shown = []
        for topic in group.topics:
            for partition in topic.partitions:
                text = f"{self._name(topic)}-{partition.partition_index}="
                text += str(partition.committed_offset)
                text += f"@{partition.committed_leader_epoch}" if partition.committed_leader_epoch >= 0 else ""
                text += f"({partition.metadata})" if partition.metadata else ""
                text += f":{ErrorCode(partition.error_code).name}" if partition.error_code else ""
                shown.append(text)
        self.say("fetch-id" if by_id else "fetch", shown)

    def do_fetch_id(self, group_id: str, *words: str) -> None:
        self.do_fetch(group_id, *words, by_id=True)

    def do_pending(self, producer_id: str, group_id: str, committed: str) -> None:
        name, _, offset = committed.partition("=")
        topic, _, partition = name.rpartition("-")
        topic_id = self.shell.dependencies.image.topics[topic].topic_id
        value = OffsetCommitValue(
            offset=int(offset), metadata="", commit_timestamp=self.shell.at.wall_ms, topic_id=topic_id
        )
        key = OffsetCommitKey(group=group_id, topic=topic, partition=int(partition))
        self.shell.write([CoordinatorRecord(key, value)], producer_id=int(producer_id))

    def do_end(self, producer_id: str, result: str) -> None:
        self.shell.end_transaction(int(producer_id), commit=result == "commit")

    def do_expire(self) -> None:
        before = len(self.shell.log)
        self.shell.carry_out(self.shell.shard.expire_offsets(self.shell.at))
        self.lines.append(f"expire: {len(self.shell.log) - before} records")

    def do_delete(self, group_id: str, *names: str) -> None:
        request_class = messages.request(OFFSET_DELETE)
        topics = [
            request_class.OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    request_class.OffsetDeleteRequestPartition(partition_index=int(name.rpartition("-")[2]))
                    for name in of_topic
                ],
            )
            for topic, of_topic in groupby(names, key=lambda name: name.rpartition("-")[0])
        ]
        response = self.shell.ask(
            self.shell.shard.delete_offsets, request_class(group_id=group_id, topics=topics), version=0
        )
        if response.error_code:
            self.lines.append(f"delete: {ErrorCode(response.error_code).name}")
        else:
            self.say("delete", self._codes(response))

    def _codes(self, response: Any) -> list[str]:
        return [
            f"{self._name(topic)}-{partition.partition_index}:{ErrorCode(partition.error_code).name}"
            for topic in response.topics
            for partition in topic.partitions
        ]

    def _name(self, topic: Any) -> str:
        return topic.name or next(name for name, topic_id in self.ids.items() if topic_id == topic.topic_id)


def _told(words: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Partitions, with what is said of them, and options."""
    pairs = dict(word.partition("=")[::2] for word in words)
    options = ("version", "member", "generation", "metadata", "epoch", "retention", "instance")
    return (
        {name: text for name, text in pairs.items() if name not in options},
        {name: text for name, text in pairs.items() if name in options},
    )


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
def test_story(path: Path) -> None:
    done, _, seen = path.read_text().partition("----\n")
    assert Story().tell(done) == seen.splitlines()
