"""From bytes to messages: writes the function that reads one struct in one version.

The whole message, nested structs and arrays included, becomes one function over local variables: `d` the bytes, `n` their
end, `p` the position, `left` the objects that may still be made, `x` the size or count just read. Neighbouring fields of a
fixed size, and the size that follows them, are unpacked together. The same function can be written as a generator, which pauses
after every array element: a large request is read in slices (SEC-L2).

Always true: before a size or a count is used it has been compared with the bytes left, and counts also with the objects left.
"""

from __future__ import annotations

import struct as structs
from collections.abc import Callable, Generator
from dataclasses import is_dataclass
from typing import Any

from strandline.ids import Uuid
from strandline.wire import primitives
from strandline.wire.source import Compiled, Source
from strandline.wire.structs import FIXED, FIXED_SIZE, Field, Struct, element_size_min

Decoded = tuple[Any, int, int]
Decode = Callable[[bytes, int, int], Decoded]
"""(data, position, objects that may be made) -> (message, position after it, objects that might still be made)."""
DecodeInSlices = Callable[[bytes, int, int], Generator[int, None, Decoded]]
"""The same, pausing after every array element."""


def decoder(root: Struct, title: str) -> Decode:
    return _Decoder(root, title, in_slices=False).compile()


def decoder_in_slices(root: Struct, title: str) -> DecodeInSlices:
    return _Decoder(root, title, in_slices=True).compile()


class _Decoder:
    def __init__(self, root: Struct, title: str, *, in_slices: bool) -> None:
        self.in_slices = in_slices
        self.source = Source(f"decode {title}{' in slices' if in_slices else ''}")
        self.source.names.update(
            read_unsigned_varint=primitives.read_unsigned_varint,
            charge_tags=primitives.charge_tags,
            next_tag=primitives.next_tag,
            skip_tag=primitives.skip_tag,
            skip_tags=primitives.skip_tags,
            too_long=primitives.too_long,
            too_many=primitives.too_many,
            null=primitives.null,
            wrong_tag_size=primitives.wrong_tag_size,
            new=object.__new__,
            new_uuid=bytes.__new__,
            Uuid=Uuid,
        )
        self.run: list[tuple[str, str, str]] = []
        """Fields of a fixed size not unpacked yet: format, variable, field name."""
        self.uuids: list[str] = []
        self.root = root

    def compile(self) -> Compiled:
        with self.source.block("def decode(d, p, left):"):
            self.source.line("n = len(d)")
            message = self.struct(self.root)
            if self.in_slices:
                self.source.line("yield 0")  # a generator also when it has no array
            self.source.line(f"return {message}, p, left")
        return self.source.compile("decode")

    # Runs of a fixed size

    def take(self, letter: str, variable: str, field_name: str) -> None:
        self.run.append((letter, variable, field_name))

    def flush(self) -> None:
        if not self.run:
            return
        layout = structs.Struct(">" + "".join(letter for letter, _, _ in self.run))
        unpack = self.source.bind("unpack", layout.unpack_from)
        first, last = self.run[0][2], self.run[-1][2]
        with self.source.field(first if first == last else f"{first}..{last}"):
            if [letter for letter, _, _ in self.run] == ["B"]:
                self.source.line(f"{self.run[0][1]} = d[p]")
            else:
                self.source.line(f"{''.join(f'{variable}, ' for _, variable, _ in self.run)}= {unpack}(d, p)")
            self.source.line(f"p += {layout.size}")
        for variable in self.uuids:
            self.source.line(f"{variable} = new_uuid(Uuid, {variable})")
        self.run.clear()
        self.uuids.clear()

    def size(self, field: Field, compact: bool, legacy_letter: str) -> None:
        """Leave the size or count of this field in x, -1 for null."""
        line = self.source.line
        self.take("B" if compact else legacy_letter, "x", field.name)
        self.flush()
        if compact:
            with self.source.field(field.name):
                with self.source.block("if x > 127:"):
                    line("x, p = read_unsigned_varint(d, p - 1)")
                line("x -= 1")

    # Structs and fields

    def struct(self, struct: Struct) -> str:
        """Read a struct; the name of the variable that holds it."""
        variables = {field.name: self.source.unique(field.name) for field in struct.fields}
        for field in struct.untagged:
            self.field(field, struct, variables[field.name])
        if struct.flexible:
            self.tags(struct, variables)
        self.flush()
        return self.build(struct, variables)

    def build(self, struct: Struct, variables: dict[str, str]) -> str:
        message = self.source.unique("message")
        cls = self.source.bind("cls", struct.cls)
        if is_dataclass(struct.cls):
            arguments = ", ".join(f"{name}={variable}" for name, variable in variables.items())
            self.source.line(f"{message} = {cls}({arguments})")
        else:
            self.source.line(f"{message} = new({cls})")
            for name, variable in variables.items():
                self.source.line(f"{message}.{name} = {variable}")
        return message

    def field(self, field: Field, struct: Struct, variable: str) -> None:
        if field.array:
            self.array(field, struct, variable)
        elif field.type in FIXED:
            self.take(FIXED[field.type], variable, field.name)
            if field.type == "uuid":
                self.uuids.append(variable)
        elif field.struct is not None:
            self.nested(field, field.struct, variable)
        else:
            self.text_or_bytes(field, struct, variable)

    def nested(self, field: Field, struct: Struct, variable: str) -> None:
        if not field.nullable:
            self.flush()
            with self.source.field(field.name):
                self.source.line(f"{variable} = {self.struct(struct)}")
            return
        self.take("b", "x", field.name)
        self.flush()
        # Before a struct that may be null stands -1 or 1; in a tagged field, where the marker is a varint, 0 or 1.
        with self.source.block("if x < 0:" if field.tag is None else "if x <= 0:"):
            self.source.line(f"{variable} = None")
        with self.source.block("else:"), self.source.field(field.name):
            self.source.line(f"{variable} = {self.struct(struct)}")

    def text_or_bytes(self, field: Field, struct: Struct, variable: str) -> None:
        line, block = self.source.line, self.source.block
        text = field.type == "string"
        self.size(field, struct.flexible and not field.legacy, "h" if text else "i")
        with self.source.field(field.name):
            with block("if x < 0:"):
                line(f"{variable} = None" if field.nullable else "null()")
            with block("else:"):
                line("e = p + x")
                # A compact string could say that it is longer than any other way of writing it allows.
                with block(f"if e > n or x > {primitives.STRING_BYTES_MAX}:" if text else "if e > n:"):
                    line("too_long(x, n - p)")
                line(f"{variable} = d[p:e]{'.decode()' if text else ''}")
                line("p = e")

    def array(self, field: Field, struct: Struct, variable: str) -> None:
        line, block = self.source.line, self.source.block
        objects = field.struct.objects if field.struct is not None else 1
        self.size(field, struct.flexible, "i")
        with self.source.field(field.name):
            with block("if x < 0:"):
                line(f"{variable} = None" if field.nullable else "null()")
            with block("else:"):
                bytes_needed = _times("x", element_size_min(field, struct.flexible))
                objects_needed = _times("x", objects)
                with block(f"if {bytes_needed} > n - p or {objects_needed} > left:"):
                    line("too_many(x, n - p, left)")
                line(f"left -= {objects_needed}")
                self.elements(field, struct, variable)

    def elements(self, field: Field, struct: Struct, variable: str) -> None:
        line, block = self.source.line, self.source.block
        frozen = is_dataclass(struct.cls)
        if field.type == "uuid":
            line(f"{variable} = [new_uuid(Uuid, d[q : q + 16]) for q in range(p, p + 16 * x, 16)]")
            line("p += 16 * x")
        elif field.type in FIXED:
            unpacker = self.source.bind("unpacker", primitives.array_unpacker(FIXED[field.type]))
            values = f"{unpacker}(x)(d, p)"
            line(f"{variable} = {values}" if frozen else f"{variable} = list({values})")
            line(f"p += {_times('x', FIXED_SIZE[field.type])}")
            return
        else:
            line(f"{variable} = []")
            append = self.source.unique("append")
            line(f"{append} = {variable}.append")
            with block("for _ in range(x):"):
                if field.struct is not None:
                    line(f"{append}({self.struct(field.struct)})")
                else:
                    element = Field("element", field.type, field.default)
                    self.text_or_bytes(element, struct, "element")
                    line(f"{append}(element)")
                if self.in_slices:
                    line("yield 0")
        if frozen:
            line(f"{variable} = tuple({variable})")

    # Tagged fields

    def tags(self, struct: Struct, variables: dict[str, str]) -> None:
        line, block, unique = self.source.line, self.source.block, self.source.unique
        self.take("B", "x", "tagged fields")
        self.flush()
        for field in struct.tagged:
            self.default(field, struct, variables[field.name])
        with block("if x:"):
            if not struct.tagged:
                with self.source.field("tagged fields"):
                    line("p, left = skip_tags(d, p - 1, left)")
                return
            tag, end = unique("tag"), unique("end")
            with self.source.field("tagged fields"):
                line("x, p = read_unsigned_varint(d, p - 1)")
                line("left = charge_tags(x, left)")
                line(f"{tag} = -1")
                header = "for _ in range(x):"
            with block(header):
                with self.source.field("tagged fields"):
                    line(f"{tag}, p, {end} = next_tag(d, p, {tag})")
                for index, field in enumerate(struct.tagged):
                    with block(f"{'elif' if index else 'if'} {tag} == {field.tag}:"):
                        self.field(field, struct, variables[field.name])
                        self.flush()
                        with self.source.field(field.name), block(f"if p != {end}:"):
                            line(f"wrong_tag_size(p, {end})")
                with block("else:"), self.source.field("tagged fields"):
                    line(f"p = skip_tag({tag}, p, {end})")

    def default(self, field: Field, struct: Struct, variable: str) -> None:
        """What a tagged field is when it was not sent."""
        if field.default != ():
            value = self.source.bind("default", field.default)
        elif field.struct is not None and not field.array:
            value = f"{self.source.bind('cls', field.struct.cls)}()"
        else:
            value = "()" if is_dataclass(struct.cls) else "[]"
        self.source.line(f"{variable} = {value}")


def _times(variable: str, factor: int) -> str:
    return variable if factor == 1 else f"{factor} * {variable}"
