"""A request that failed as a whole is answered in the shape of its API."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="list-item"

from __future__ import annotations

from typing import Any

import pytest

from strandline.api.requests.error_reply import error_reply
from strandline.errors import ErrorCode
from strandline.ids import ZERO_UUID, Uuid
from strandline.wire import messages

CODE = ErrorCode.REQUEST_TIMED_OUT
ID = Uuid(bytes([7]) * 16)


def reply(api_key: int, version: int, request: Any) -> Any:
    sent = messages.decode_request(api_key, version, messages.encode_request(api_key, version, request))
    body = error_reply(api_key, version, sent, CODE, "too late")
    assert body is not None
    return messages.decode_response(api_key, version, body)


@pytest.mark.parametrize("version", range(2, 8))
def test_create_topics_names_each_topic(version):
    Request = messages.request(19)
    topics = [Request.CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in "ab"]
    answer = reply(19, version, Request(topics=topics))
    assert [(t.name, t.error_code, t.error_message) for t in answer.topics] == [
        ("a", CODE, "too late"),
        ("b", CODE, "too late"),
    ]


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics_names_each_topic_as_it_was_named(version):
    Request = messages.request(20)
    if version < 6:
        request, named = Request(topic_names=["a", "b"]), [("a", ZERO_UUID), ("b", ZERO_UUID)]
    else:
        states = [Request.DeleteTopicState(name="a"), Request.DeleteTopicState(name=None, topic_id=ID)]
        request, named = Request(topics=states), [("a", ZERO_UUID), (None, ID)]
    answer = reply(20, version, request)
    assert [(t.name, t.topic_id) for t in answer.responses] == named
    assert {t.error_code for t in answer.responses} == {CODE}


@pytest.mark.parametrize(("api_key", "resource"), [(33, "AlterConfigsResource"), (44, "AlterConfigsResource")])
def test_alter_configs_names_each_resource(api_key, resource):
    Request = messages.request(api_key)
    wanted = [getattr(Request, resource)(resource_type=2, resource_name=name) for name in "ab"]
    answer = reply(api_key, 1, Request(resources=wanted))
    assert [(r.resource_type, r.resource_name, r.error_code) for r in answer.responses] == [
        (2, "a", CODE),
        (2, "b", CODE),
    ]


def test_create_partitions_names_each_topic():
    Request = messages.request(37)
    answer = reply(37, 3, Request(topics=[Request.CreatePartitionsTopic(name="a", count=5)]))
    assert [(t.name, t.error_code) for t in answer.results] == [("a", CODE)]


def test_quotas_name_each_entity():
    Request = messages.request(49)
    entity = Request.EntityData(entity_type="user", entity_name="alice")
    [entry] = reply(49, 1, Request(entries=[Request.EntryData(entity=[entity])])).entries
    assert (entry.error_code, entry.error_message) == (CODE, "too late")
    assert [(e.entity_type, e.entity_name) for e in entry.entity] == [("user", "alice")]


@pytest.mark.parametrize(
    ("api_key", "version"), [(43, 1), (43, 2), (45, 0), (46, 0), (55, 2), (57, 2), (64, 0), (80, 0), (81, 0)]
)
def test_an_error_at_the_top_says_it_for_all(api_key, version):
    assert reply(api_key, version, messages.request(api_key)()).error_code == CODE


def test_a_version_without_a_place_for_it():
    assert error_reply(43, 0, messages.request(43)(), CODE) is None


def test_scram_credentials_name_each_user_of_both_lists_once():
    Request = messages.request(51)
    deletions = [Request.ScramCredentialDeletion(name=name, mechanism=1) for name in ("a", "b")]
    upsertions = [Request.ScramCredentialUpsertion(name=name, mechanism=1) for name in ("c", "a")]
    answer = reply(51, 0, Request(deletions=deletions, upsertions=upsertions))
    assert [(r.user, r.error_code, r.error_message) for r in answer.results] == [(u, CODE, "too late") for u in "abc"]


@pytest.mark.parametrize("version", range(2))
def test_client_quotas_name_each_entity(version):
    Request = messages.request(49)
    entities = [[Request.EntityData(entity_type="user", entity_name=name)] for name in ("a", None)]
    answer = reply(49, version, Request(entries=[Request.EntryData(entity=entity, ops=[]) for entity in entities]))
    assert [(e.error_code, [(p.entity_type, p.entity_name) for p in e.entity]) for e in answer.entries] == [
        (CODE, [("user", "a")]),
        (CODE, [("user", None)]),
    ]


@pytest.mark.parametrize("version", range(1, 4))
def test_acls_have_an_error_each(version):
    create, delete = messages.request(30), messages.request(31)
    made = reply(30, version, create(creations=[create.AclCreation(resource_type=2)] * 2))
    gone = reply(31, version, delete(filters=[delete.DeleteAclsFilter(resource_type_filter=2)] * 3))
    assert [each.error_code for each in made.results] == [CODE] * 2
    assert [each.error_code for each in gone.filter_results] == [CODE] * 3
