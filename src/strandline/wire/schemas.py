"""Kafka's messages as kio describes them, translated to our Structs. The only file that imports kio.

kio has one frozen dataclass per struct and version. What we take from it is the layout; names and values are Kafka's own
again: times are plain integers under their `_ms` names, error codes are integers, ids are never None.

Always true: a module of kio is imported only when its (message, version) is first asked for, since each costs milliseconds.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import importlib
import sys
import uuid
from collections.abc import Mapping
from types import ModuleType, NoneType, UnionType
from typing import Any, ClassVar, Protocol, get_args, get_origin

from strandline.ids import ZERO_UUID, Uuid
from strandline.wire.structs import Field, Struct

REQUEST, RESPONSE, DATA, HEADER = "request", "response", "data", "header"

DATA_NAMES = {
    "ConsumerProtocolAssignment": "consumer_protocol_assignment",
    "ConsumerProtocolSubscription": "consumer_protocol_subscription",
    "ControlRecordTypeSchema": "control_record_type_schema",
    "DefaultPrincipalData": "default_principal_data",
    "EndTxnMarker": "end_txn_marker",
    "KRaftVersionRecord": "k_raft_version_record",
    "LeaderChangeMessage": "leader_change_message",
    "RequestHeader": "request_header",
    "ResponseHeader": "response_header",
    "SnapshotFooterRecord": "snapshot_footer_record",
    "SnapshotHeaderRecord": "snapshot_header_record",
    "VotersRecord": "voters_record",
}

_TYPES = {"error_code": "int16", "timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}
"""kio's own types, and what they are on the wire."""

_IMPLICIT_DEFAULTS: dict[str, object] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": ZERO_UUID,
}
"""Kafka's defaults where its definition states none; every integer's is 0."""

_NULL_BY_DEFAULT = {
    "ConsumerGroupHeartbeatRequest": {"topic_partitions"},
    "ListPartitionReassignmentsRequest": {"topics"},
    "StreamsGroupHeartbeatRequest": {
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
    },
    "StreamsGroupHeartbeatResponse": {"active_tasks", "standby_tasks", "warmup_tasks", "partitions_by_user_endpoint"},
    "Topology": {"subtopologies"},
}
"""Arrays of structs that Kafka declares null by default, which kio does not carry over."""


class KioStruct(Protocol):
    """A class of kio: one struct in one version."""

    __flexible__: ClassVar[bool]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[object]]]


@dataclasses.dataclass(frozen=True, slots=True)
class Schema:
    """One message in all its versions."""

    name: str
    """kio's name of the folder."""
    kind: str

    @property
    def versions(self) -> range:
        """The versions that kio knows."""
        known = [number for number, paths in self._paths().items() if self._entity_type() in paths]
        return range(min(known), max(known) + 1)

    def load(self, version: int) -> Struct:
        """The root struct in this version; LookupError if there is none."""
        return _struct(self.kio_class(version))

    def kio_class(self, version: int) -> type[KioStruct]:
        path: str = self._paths()[version][self._entity_type()]
        module, _, class_name = path.partition(":")
        found: type[KioStruct] = getattr(importlib.import_module(module), class_name)
        return found

    def _paths(self) -> Mapping[int, Mapping[object, str]]:
        return _index().schema_name_map[self.name]  # type: ignore[no-any-return]

    def _entity_type(self) -> object:
        return _index().EntityType[self.kind]


def request(api_key: int) -> Schema:
    return Schema(_index().api_key_map[api_key], REQUEST)


def response(api_key: int) -> Schema:
    return Schema(_index().api_key_map[api_key], RESPONSE)


def data(name: str) -> Schema:
    return Schema(DATA_NAMES[name], HEADER if name.endswith("Header") else DATA)


def api_keys() -> list[int]:
    return sorted(_index().api_key_map)


@functools.cache
def _index() -> ModuleType:
    # kio registers strategies with hypothesis when it can import it. No server needs them, and the import takes half a
    # second wherever hypothesis happens to be installed: a None in sys.modules makes that import fail at once.
    absent = object()
    before = sys.modules.get("hypothesis", absent)
    if before is absent:
        sys.modules["hypothesis"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("kio.static.primitive")
    finally:
        if before is absent:
            del sys.modules["hypothesis"]
    return importlib.import_module("kio.schema.index")


@functools.cache
def _struct(cls: type[KioStruct]) -> Struct:
    return Struct(
        cls.__name__, cls.__flexible__, tuple(_field(cls.__name__, field) for field in dataclasses.fields(cls))
    )


def _field(struct_name: str, field: dataclasses.Field[object]) -> Field:
    type_, nullable = _without_none(field.type)
    array = get_origin(type_) is tuple
    if array:
        type_, _ = _without_none(get_args(type_)[0])
    struct: Struct | None = _struct(type_) if hasattr(type_, "__flexible__") else None
    kio_type = "struct" if struct is not None else field.metadata["kafka_type"]
    kafka_type = _TYPES.get(kio_type, kio_type)
    # Ids and times are None in kio where Kafka has a zero id and -1: on the wire neither can be null.
    nullable = nullable and (array or kafka_type in ("string", "bytes", "records", "struct"))
    # kio took Kafka's suffix away where it made the number a duration or a point in time, and gave an underscore to names
    # that are also built-in functions.
    name = field.name.rstrip("_") + ("_ms" if kio_type.startswith(("timedelta", "datetime")) else "")
    default = _default(field.default, kafka_type, array)
    if nullable and name in _NULL_BY_DEFAULT.get(struct_name, ()):
        default = None
    return Field(
        name=name,
        type=kafka_type,
        default=default,
        array=array,
        nullable=nullable,
        tag=field.metadata.get("tag"),
        struct=struct,
        legacy=(struct_name, name) == ("RequestHeader", "client_id"),
    )


def _without_none(type_: object) -> tuple[Any, bool]:
    if get_origin(type_) is UnionType:
        (inner,) = (arg for arg in get_args(type_) if arg is not NoneType)
        return inner, True
    return type_, False


def _default(value: object, kafka_type: str, array: bool) -> object:
    match value:
        case dataclasses.MISSING:
            return () if array or kafka_type == "struct" else _IMPLICIT_DEFAULTS.get(kafka_type, 0)
        case None if kafka_type == "uuid" and not array:
            return ZERO_UUID
        case None if kafka_type == "int64" and not array:
            return -1
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case uuid.UUID():
            return Uuid(value.bytes)
        case _ if dataclasses.is_dataclass(value):
            return ()
        case bool():
            return value
        case int():
            return int(value)
    return value
