"""Stories of a classic group, told as a transcript: what is done at the margin, what comes of it indented.

    play('''
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0,1
            log: generation 1 range, leader a: a=0,1
            a sync: assigned 0,1
    ''')

A transcript is performed, written down anew, and has to be what it was. A member's ids are called a, then a/2, a/3, ...

    join NAME [v= instance= session= rebalance= protocols= type= topics= id=]      what isn't said is as it was before
    sync NAME [MEMBER=ASSIGNMENT ...] [v= type= name= generation= instance= id=]
    beat NAME [generation= instance= id=]
    leave NAME[/INSTANCE] ... [v=]       "-/i" is whoever has the instance id i
    restart NAME                         it has forgotten its member id
    tick SECONDS, hold, commit [one], fail CODE, refuse CODE, accept, reload
    status, describe
"""

from __future__ import annotations

import textwrap
from typing import Any

from strandline.coordinator.record import CoordinatorRecord
from strandline.errors import ErrorCode
from strandline.groups.caller import Caller
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.records import GroupMetadataKey, GroupMetadataValue
from strandline.wire import messages
from tests.unit.groups.driver import Call, Driver

GROUP = "g"
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14


def play(transcript: str, **settings: str) -> Stage:
    """Perform a transcript, with these settings (keys with underscores); the stage as it was left."""
    told = textwrap.dedent(transcript).strip()
    stage = Stage(**settings)
    for line in told.splitlines():
        if not line.startswith(" "):
            stage.perform(line)
    performed = "\n".join(stage.lines)
    assert performed == told, f"it went otherwise:\n{performed}"
    return stage


def subscription(*topics: str) -> bytes:
    Subscription = messages.data("ConsumerProtocolSubscription")
    return b"\0\0" + messages.encode_data("ConsumerProtocolSubscription", 0, Subscription(topics=list(topics)))


class Stage:
    def __init__(self, **settings: Any) -> None:
        self.driver = Driver(**settings)
        self.lines: list[str] = []
        self._ids: dict[str, list[str]] = {}
        self._current: dict[str, str] = {}
        self._options: dict[str, dict[str, str]] = {}
        self._generations: dict[str, int] = {}
        self.driver.answered = self._heard
        self.driver.appended = self._appended

    @property
    def group(self) -> ClassicGroup:
        group = self.driver.shard.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    def perform(self, line: str) -> None:
        self.lines.append(line)
        words = line.partition("#")[0].split()
        if words:
            getattr(self, f"_{words[0]}")(*words[1:])

    def say(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def call(self, operation: str, name: str, request: Any, version: int) -> Call:
        """Ask in a member's name."""
        return self.driver.call(operation, request, version, name, f"{name} {operation.removesuffix('_group')}")

    # What members do

    def _join(self, name: str, *words: str) -> None:
        # Whoever joined last comes last: an instance id stands for it.
        options = self._options[name] = self._options.pop(name, {})
        given = _options(words)
        options.update({key: value for key, value in given.items() if key != "id"})
        Request = messages.request(JOIN_GROUP)
        metadata = subscription(*options.get("topics", "t").split(","))
        protocols = [word for word in options.get("protocols", "range").split(",") if word != "none"]
        request = Request(
            group_id=GROUP,
            session_timeout_ms=round(float(options.get("session", "10")) * 1000),
            rebalance_timeout_ms=round(float(options.get("rebalance", "60")) * 1000),
            member_id=self._id(name, given),
            group_instance_id=options.get("instance"),
            protocol_type=options.get("type", "consumer"),
            protocols=[Request.JoinGroupRequestProtocol(name=protocol, metadata=metadata) for protocol in protocols],
        )
        self.call("join_group", name, request, int(options.get("v", "9")))

    def _sync(self, name: str, *words: str) -> None:
        given = _options(words)
        Request = messages.request(SYNC_GROUP)
        assigned = {key: value for key, value in given.items() if key not in SYNC_OPTIONS}
        request = Request(
            group_id=GROUP,
            generation_id=int(given.get("generation", self._generations.get(name, -1))),
            member_id=self._id(name, given),
            group_instance_id=given.get("instance", self._options.get(name, {}).get("instance")),
            protocol_type=given.get("type", "consumer") if given.get("type") != "null" else None,
            protocol_name=given.get("name", "range") if given.get("name") != "null" else None,
            assignments=[
                Request.SyncGroupRequestAssignment(member_id=self._real(member), assignment=value.encode())
                for member, value in assigned.items()
            ],
        )
        self.call("sync_group", name, request, int(given.get("v", "5")))

    def _beat(self, name: str, *words: str) -> None:
        given = _options(words)
        request = messages.request(HEARTBEAT)(
            group_id=GROUP,
            generation_id=int(given.get("generation", self._generations.get(name, -1))),
            member_id=self._id(name, given),
            group_instance_id=given.get("instance", self._options.get(name, {}).get("instance")),
        )
        self.call("heartbeat", name, request, 4)

    def _leave(self, *words: str) -> None:
        given = _options(word for word in words if "=" in word)
        version = int(given.get("v", "5"))
        Request = messages.request(LEAVE_GROUP)
        names = [word for word in words if "=" not in word]
        if version < 3:
            request = Request(group_id=GROUP, member_id=self._current.get(names[0], names[0]))
        else:
            request = Request(group_id=GROUP, members=[self._identity(Request, name) for name in names])
        self.call("leave_group", " ".join(names), request, version)

    def _identity(self, Request: Any, word: str) -> Any:
        name, _, instance = word.partition("/")
        member_id = "" if name == "-" else self._current.get(name, name)
        return Request.MemberIdentity(member_id=member_id, group_instance_id=instance or None)

    def _restart(self, name: str) -> None:
        self._current.pop(name)

    # What happens to them

    def _tick(self, seconds: str) -> None:
        self.driver.advance(float(seconds))

    def _hold(self) -> None:
        self.driver.hold()

    def _commit(self, which: str = "all") -> None:
        self.driver.commit() if which == "all" else self.driver.commit_one()

    def _fail(self, code: str) -> None:
        self.driver.commit(ErrorCode[code])

    def _refuse(self, code: str) -> None:
        self.driver.refuses = ErrorCode[code]

    def _accept(self) -> None:
        self.driver.refuses = None

    def _reload(self) -> None:
        self.driver.reload()

    # What is seen

    def _status(self) -> None:
        if GROUP not in self.driver.shard.groups:
            self.say("no group")
            return
        group = self.group
        text = f"{group.state_name()} generation {group.generation_id}"
        if group.protocol_name is not None:
            text += f" {group.protocol_name}"
        if group.leader_id is not None:
            text += f", leader {self._name(group.leader_id)}"
        if group.members:
            text += f", members {self._names(group.members)}"
        if group.pending_join:
            text += f", pending {self._names(group.pending_join)}"
        self.say(text)

    def _describe(self, version: str = "6") -> None:
        described = self.driver.shard.describe_group(GROUP, Caller("admin", "/127.0.0.1", int(version)))
        text = f"{described.group_state} {described.protocol_type} {described.protocol_data}".rstrip()
        if described.error_code:
            text += f" {ErrorCode(described.error_code).name}: {described.error_message}"
        self.say(text)
        for member in described.members:
            shown = "with" if member.member_metadata else "without"
            self.say(
                f"{self._name(member.member_id)} {member.client_id} {member.client_host} "
                f"{shown} metadata, assigned {member.member_assignment.decode() or 'nothing'}"
            )

    def _heard(self, call: Call) -> None:
        name, _, operation = call.label.rpartition(" ")
        response = call.response
        code = ErrorCode(response.error_code)
        if operation == "join":
            text = self._joined(name, response)
        elif operation == "sync":
            text = f"assigned {response.assignment.decode() or 'nothing'}" if code is ErrorCode.NONE else code.name
        elif operation == "leave" and response.members:
            text = ", ".join(ErrorCode(member.error_code).name for member in response.members)
        else:
            text = code.name
        self.say(f"{call.label}: {text}")

    def _joined(self, name: str, response: Any) -> str:
        code = ErrorCode(response.error_code)
        if response.member_id and code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self._current[name] = response.member_id
            if response.member_id not in self._ids.setdefault(name, []):
                self._ids[name].append(response.member_id)
        if code is not ErrorCode.NONE:
            return code.name
        self._generations[name] = response.generation_id
        text = f"generation {response.generation_id} {response.protocol_name}, leader {self._name(response.leader)}"
        if response.members:
            text += f", members {self._names(member.member_id for member in response.members)}"
        return text + (", skip assignment" if response.skip_assignment else "")

    def _appended(self, record: CoordinatorRecord) -> None:
        assert isinstance(record.key, GroupMetadataKey)
        if record.value is None:
            self.say("log: gone")
            return
        assert isinstance(record.value, GroupMetadataValue)
        text = f"log: generation {record.value.generation}"
        if record.value.members:
            assert record.value.leader is not None
            members = [f"{self._name(one.member_id)}={one.assignment.decode()}" for one in record.value.members]
            text += f" {record.value.protocol}, leader {self._name(record.value.leader)}: {' '.join(members)}"
        else:
            text += ", empty"
        self.say(text)

    # Ids

    def _id(self, name: str, given: dict[str, str]) -> str:
        return self._real(given["id"]) if "id" in given else self._current.get(name, "")

    def _real(self, shown: str) -> str:
        name, _, number = shown.partition("/")
        ids = self._ids.get(name, [])
        index = int(number or 1) - 1
        return ids[index] if index < len(ids) else shown

    def _name(self, member_id: str) -> str:
        for name, ids in self._ids.items():
            if member_id in ids:
                number = ids.index(member_id) + 1
                return name if number == 1 else f"{name}/{number}"
        # One whose answer is still to come; it begins with the client id, or the instance id.
        for name, options in reversed(self._options.items()):
            if member_id.startswith((f"{name}-", f"{options.get('instance', name)}-")):
                number = len(self._ids.setdefault(name, [])) + 1
                self._ids[name].append(member_id)
                return name if number == 1 else f"{name}/{number}"
        return member_id

    def _names(self, member_ids: Any) -> str:
        return ",".join(self._name(member_id) for member_id in member_ids)


SYNC_OPTIONS = ("v", "type", "name", "generation", "instance", "id")


def _options(words: Any) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)
