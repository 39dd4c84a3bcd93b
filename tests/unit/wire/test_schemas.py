"""What is taken from kio, and what it costs."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="assignment"

from __future__ import annotations

import subprocess
import sys

import pytest

from strandline.ids import ZERO_UUID
from strandline.wire import schemas
from strandline.wire.structs import Struct


def field(struct: Struct, *path: str):
    found = None
    for name in path:
        (found,) = (each for each in struct.fields if each.name == name)
        struct = found.struct
    return found


def test_times_have_kafkas_names_and_are_integers():
    throttle = field(schemas.response(3).load(12), "throttle_time_ms")
    assert (throttle.type, throttle.default) == ("int32", 0)
    timeout = field(schemas.request(19).load(7), "timeout_ms")
    assert (timeout.type, timeout.default) == ("int32", 60_000)
    appended = field(schemas.response(0).load(9), "responses", "partition_responses", "log_append_time_ms")
    assert (appended.type, appended.default, appended.nullable) == ("int64", -1, False)


def test_ids_are_zero_and_never_null():
    topic_id = field(schemas.response(3).load(12), "topics", "topic_id")
    assert (topic_id.type, topic_id.default, topic_id.nullable) == ("uuid", ZERO_UUID, False)


def test_error_codes_are_integers():
    error_code = field(schemas.response(12).load(4), "error_code")
    assert (error_code.type, error_code.default) == ("int16", 0)


def test_nullable_arrays_keep_the_default_that_kafka_gives_them():
    assert field(schemas.request(3).load(12), "topics").nullable
    assert field(schemas.request(3).load(12), "topics").default == ()
    assert field(schemas.request(46).load(0), "topics").default is None
    assert field(schemas.request(68).load(1), "topic_partitions").default is None


def test_every_exception_about_nulls_is_about_a_field_that_exists():
    found = set()

    def walk(struct):
        for each in struct.fields:
            if each.array and each.struct is not None and each.nullable and each.default is None:
                found.add((struct.name, each.name))
            if each.struct is not None:
                walk(each.struct)

    for key in schemas.api_keys():
        for schema in (schemas.request(key), schemas.response(key)):
            walk(schema.load(schema.versions[-1]))
    assert {(name, each) for name, fields in schemas._NULL_BY_DEFAULT.items() for each in fields} <= found


def test_no_name_has_kios_underscore():
    assert field(schemas.data("DefaultPrincipalData").load(0), "type").type == "string"
    assert field(schemas.request(73).load(0), "directories", "id").type == "uuid"


def test_only_the_request_headers_client_id_keeps_its_old_form():
    assert field(schemas.data("RequestHeader").load(2), "client_id").legacy
    assert not field(schemas.data("ConsumerProtocolSubscription").load(3), "topics").legacy


def test_what_kio_does_not_have():
    with pytest.raises(LookupError):
        schemas.request(7)
    with pytest.raises(LookupError):
        schemas.data("Nothing")
    with pytest.raises(LookupError):
        schemas.request(3).load(99)


def test_a_process_that_loads_schemas_imports_neither_hypothesis_nor_other_messages():
    script = """
import sys
from strandline.wire import messages
messages.request(3), messages.encode_response(3, 12, messages.response(3)())
assert not [name for name in sys.modules if name.split(".")[0] == "hypothesis"], "hypothesis"
loaded = {name for name in sys.modules if name.startswith("kio.schema.") and name.endswith((".request", ".response"))}
assert {name.rpartition(".")[0] for name in loaded} == {"kio.schema.metadata.v12", "kio.schema.metadata.v13"}, loaded
import hypothesis
"""
    subprocess.run([sys.executable, "-c", script], check=True)
