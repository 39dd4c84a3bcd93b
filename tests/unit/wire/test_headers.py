"""Headers by hand: which version a message has, and what a stranger may put in one."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="operator"

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire import headers, messages, schemas
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import read_request_header, read_response_header, request_header, response_header


def test_flexible_versions_are_those_of_the_schemas():
    for key in schemas.api_keys():
        for schema in (schemas.request(key), schemas.response(key)):
            for version in schema.versions:
                assert headers.is_flexible(key, version) == schema.load(version).flexible, (key, version)
        assert headers.flexible_since(key) is None or headers.flexible_since(key) <= schemas.request(key).versions[-1]


def test_apis_that_do_not_exist_are_not_flexible():
    for key in (-1, 4, 5, 6, 7, 93, 32767):
        assert not headers.is_flexible(key, 0)
        with pytest.raises(LookupError):
            headers.flexible_since(key)


@pytest.mark.parametrize("client_id", [None, "", "client", "클라이언트"])
@pytest.mark.parametrize(
    ("api_key", "version", "header_version"), [(3, 8, 1), (3, 9, 2), (17, 1, 1), (18, 3, 2), (0, 9, 2)]
)
def test_request_header_is_the_one_of_the_schemas(api_key, version, header_version, client_id):
    expected = messages.data("RequestHeader")(
        request_api_key=api_key, request_api_version=version, correlation_id=7, client_id=client_id
    )
    data = request_header(api_key, version, 7, client_id)
    assert data == messages.encode_data("RequestHeader", header_version, expected)
    for buffer in (data + b"body", memoryview(data + b"body"), bytearray(data + b"body")):
        assert read_request_header(buffer) == (api_key, version, 7, client_id, len(data))
    assert read_request_header(b"--" + data + b"body", 2).body_position == 2 + len(data)


def test_response_header_is_flexible_except_for_api_versions():
    assert response_header(3, 8, 7) == b"\0\0\0\x07"
    assert response_header(3, 9, 7) == b"\0\0\0\x07\0"
    assert response_header(18, 4, 7) == b"\0\0\0\x07"
    for api_key, version in ((3, 8), (3, 9), (18, 4)):
        data = response_header(api_key, version, 7)
        assert read_response_header(api_key, version, b"-" + data + b"body", 1) == (7, 1 + len(data))


def test_unknown_tags_are_skipped():
    data = request_header(3, 9, 7, "c")[:-1] + b"\x02\x00\x01x\x05\x00"
    assert read_request_header(data + b"body").body_position == len(data)
    data = response_header(3, 9, 7)[:-1] + b"\x01\x00\x02xy"
    assert read_response_header(3, 9, data) == (7, len(data))


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (b"", "the bytes end here"),
        (b"\x01\x00", "the bytes end here"),
        (b"\x01\x00\x05x", "a size of 5 where 1 bytes are left"),
        (b"\x02\x04\x00\x04\x00", "not in ascending order"),
        (b"\x80\x80\x80\x80\x80\x01", "longer than 5 bytes"),
        (b"\x80\xda\xc4\x09" + b"\x00\x00" * 1000, "20000000 tagged fields"),
        (b"\x65" + b"".join(bytes((tag, 0)) for tag in range(101)), "more tagged fields than one message may have"),
    ],
)
def test_bad_tags_are_refused_and_floods_are_not_walked(tags, reason):
    with pytest.raises(MalformedRequest, match=f"request header, tagged fields.*{reason}"):
        read_request_header(request_header(3, 9, 7, "c")[:-1] + tags)
    with pytest.raises(MalformedRequest, match=f"response header, tagged fields.*{reason}"):
        read_response_header(3, 9, response_header(3, 9, 7)[:-1] + tags)


def test_a_header_cut_anywhere_is_malformed():
    data = request_header(3, 9, 7, "client")
    for size in range(len(data)):
        with pytest.raises(MalformedRequest):
            read_request_header(memoryview(data)[:size])
    for size in range(5):
        with pytest.raises(MalformedRequest):
            read_response_header(3, 9, response_header(3, 9, 7)[:size])


def test_a_client_id_that_is_not_utf8_or_too_long():
    with pytest.raises(MalformedRequest, match="client_id: not UTF-8"):
        read_request_header(b"\0\x03\0\x01\0\0\0\x07\0\x01\xff")
    with pytest.raises(MalformedRequest, match="client_id: a size of 9 where 1 bytes are left"):
        read_request_header(b"\0\x03\0\x01\0\0\0\x07\0\x09c")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_header_or_malformed(data):
    try:
        header = read_request_header(data)
    except MalformedRequest:
        return
    assert 10 <= header.body_position <= len(data)
