"""Dataclasses of our own as structs."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from dataclasses import dataclass

from strandline.wire.codec import Codec
from strandline.wire.declared import Int32, String, since, struct_of, tagged


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    number: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    name: String | None
    inners: tuple[Inner, ...]
    later: Int32 = since(1, default=-1)  # noqa: RUF009 - makes a dataclass field
    rare: tuple[String, ...] | None = tagged(0, since=2, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    number: Int32 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    unsaid: Defaults | None = tagged(0, default=None)  # noqa: RUF009 - makes a dataclass field
    said: Defaults | None = tagged(1, default=None, null_is_sent=True)  # noqa: RUF009


FULL = Outer(name="n", inners=(Inner(number=1), Inner(number=2)), later=5, rare=("x",))


def test_a_field_exists_from_its_version_on():
    names = [[field.name for field in struct_of(Outer, version, flexible=True).fields] for version in range(3)]
    assert names == [["name", "inners"], ["name", "inners", "later"], ["name", "inners", "later", "rare"]]


def test_bytes_and_back():
    codec = Codec(struct_of(Outer, 2, flexible=True), 2)
    data = b"\x02n" + b"\x03" + b"\0\0\0\x01\0" + b"\0\0\0\x02\0" + b"\0\0\0\x05" + b"\x01\x00\x03\x02\x02x"
    assert codec.encode(FULL) == data
    assert codec.decode(data) == (FULL, len(data))


def test_what_a_version_lacks_has_its_default():
    codec = Codec(struct_of(Outer, 0, flexible=False), 0)
    assert codec.decode(codec.encode(FULL))[0] == Outer(name="n", inners=FULL.inners)


def test_an_absent_tag_and_an_empty_one_differ():
    codec = Codec(struct_of(Outer, 2, flexible=True), 2)
    for rare in (None, ()):
        message = Outer(name=None, inners=(), rare=rare)
        assert codec.decode(codec.encode(message))[0].rare == rare


def test_a_tagged_struct_that_is_null():
    """0 stands for null there; where the default is a struct, null is said and the default is not."""
    codec = Codec(struct_of(Tagged, 0, flexible=True), 0)
    five = Defaults(number=5)
    for message, data in [
        (Tagged(), b"\x01\x01\x01\x00"),
        (Tagged(said=Defaults()), b"\x00"),
        (Tagged(unsaid=five), b"\x02\x00\x06\x01\0\0\0\x05\x00\x01\x01\x00"),
        (Tagged(said=five), b"\x01\x01\x06\x01\0\0\0\x05\x00"),
    ]:
        assert codec.encode(message) == data
        assert codec.decode(data) == (message, len(data))
    assert codec.decode(b"\x01\x00\x01\x00")[0].unsaid is None
