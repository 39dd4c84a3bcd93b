"""From messages to bytes: writes the function that writes one struct in one version.

As in `decoder.py`, the whole message becomes one function; `w` appends to the list of parts that is joined at the end, and
neighbouring fields of a fixed size, with the size that follows them, are packed together. As a generator it pauses after every
array element.

Always true: a field that this version does not have is left out, and a tagged field that has its default is not sent.
"""

from __future__ import annotations

import struct as structs
from collections.abc import Callable, Generator

from strandline.wire import primitives
from strandline.wire.source import Compiled, Source
from strandline.wire.structs import FIXED, Field, Struct

Encode = Callable[[object], bytes]
EncodeInSlices = Callable[[object], Generator[int, None, bytes]]


def encoder(root: Struct, title: str) -> Encode:
    return _Encoder(root, title, in_slices=False).compile()


def encoder_in_slices(root: Struct, title: str) -> EncodeInSlices:
    return _Encoder(root, title, in_slices=True).compile()


class _Encoder:
    def __init__(self, root: Struct, title: str, *, in_slices: bool) -> None:
        self.in_slices = in_slices
        self.source = Source(f"encode {title}{' in slices' if in_slices else ''}")
        self.source.names.update(
            encode_unsigned_varint=primitives.encode_unsigned_varint, tagged=primitives.tagged, join=b"".join
        )
        self.run: list[tuple[str, str, str]] = []
        """Fields of a fixed size not packed yet: format, expression ('' for a zero byte), field name."""
        self.write = "w"
        self.root = root

    def compile(self) -> Compiled:
        with self.source.block("def encode(message):"):
            self.source.line("parts = []")
            self.source.line("w = parts.append")
            self.struct(self.root, "message")
            self.flush()
            if self.in_slices:
                self.source.line("yield 0")
            self.source.line("return join(parts)")
        return self.source.compile("encode")

    # Runs of a fixed size

    def put(self, letter: str, expression: str, field_name: str) -> None:
        self.run.append((letter, expression, field_name))

    def flush(self) -> None:
        if self.run:
            self.emit_run()
            self.run.clear()

    def emit_run(self) -> None:
        pack = self.source.bind("pack", structs.Struct(">" + "".join(letter for letter, _, _ in self.run)).pack)
        arguments = ", ".join(expression for _, expression, _ in self.run if expression)
        first, last = self.run[0][2], self.run[-1][2]
        with self.source.field(first if first == last else f"{first}..{last}"):
            self.source.line(f"{self.write}({pack}({arguments}))")

    def size(self, field: Field, compact: bool, legacy_letter: str) -> None:
        """Write x, the size or count of this field, -1 for null."""
        if not compact:
            self.put(legacy_letter, "x", field.name)
            self.flush()
            return
        with self.source.block("if x < 127:"):
            self.put("B", "x + 1", field.name)
            self.emit_run()
            self.run.pop()
        with self.source.block("else:"):
            self.flush()
            self.source.line(f"{self.write}(encode_unsigned_varint(x + 1))")

    # Structs and fields

    def struct(self, struct: Struct, message: str) -> None:
        for field in struct.untagged:
            self.field(field, struct, f"{message}.{field.name}")
        if struct.tagged:
            self.flush()
            self.tags(struct, message)
        elif struct.flexible:
            self.put("x", "", "tagged fields")

    def field(self, field: Field, struct: Struct, value: str) -> None:
        if field.array:
            self.array(field, struct, value)
        elif field.type in FIXED:
            self.put(FIXED[field.type], value, field.name)
        elif field.struct is not None:
            self.nested(field, field.struct, value)
        else:
            self.text_or_bytes(field, struct, value)

    def nested(self, field: Field, struct: Struct, value: str) -> None:
        line, block = self.source.line, self.source.block
        message = self.source.unique("message")
        if not field.nullable:
            with self.source.field(field.name):
                line(f"{message} = {value}")
                self.struct(struct, message)
            return
        self.flush()
        with self.source.field(field.name):
            line(f"{message} = {value}")
            with block(f"if {message} is None:"):
                # In a tagged field the marker is a varint, and 0 stands for null.
                line(f"{self.write}(b'\\xff')" if field.tag is None else f"{self.write}(b'\\0')")
            with block("else:"):
                line(f"{self.write}(b'\\x01')")
                self.struct(struct, message)
                self.flush()

    def text_or_bytes(self, field: Field, struct: Struct, value: str) -> None:
        line, block = self.source.line, self.source.block
        text = field.type == "string"
        encode = ".encode()" if text else ""
        with self.source.field(field.name):
            if field.nullable:
                line(f"s = {value}")
                with block("if s is None:"):
                    line("s = b''")
                    line("x = -1")
                with block("else:"):
                    if text:
                        line("s = s.encode()")
                    line("x = len(s)")
            else:
                line(f"s = {value}{encode}")
                line("x = len(s)")
        self.size(field, struct.flexible and not field.legacy, "h" if text else "i")
        self.source.line(f"{self.write}(s)")

    def array(self, field: Field, struct: Struct, value: str) -> None:
        line, block = self.source.line, self.source.block
        values = self.source.unique(field.name)
        with self.source.field(field.name):
            line(f"{values} = {value}")
            line(f"x = -1 if {values} is None else len({values})" if field.nullable else f"x = len({values})")
        self.size(field, struct.flexible, "i")
        with self.source.field(field.name):
            if field.type == "uuid":
                with block("if x > 0:"):
                    line(f"{self.write}(join({values}))")
            elif field.type in FIXED:
                packer = self.source.bind("packer", primitives.array_packer(FIXED[field.type]))
                with block("if x > 0:"):
                    line(f"{self.write}({packer}(x)(*{values}))")
            else:
                element = self.source.unique("element")
                with block(f"for {element} in {values}{' or ()' if field.nullable else ''}:"):
                    if field.struct is not None:
                        self.struct(field.struct, element)
                    else:
                        self.text_or_bytes(Field("element", field.type, field.default), struct, element)
                    self.flush()
                    if self.in_slices:
                        line("yield 0")

    # Tagged fields

    def tags(self, struct: Struct, message: str) -> None:
        line, block, unique = self.source.line, self.source.block, self.source.unique
        tags = unique("tags")
        line(f"{tags} = []")
        for field in struct.tagged:
            value = unique(field.name)
            with self.source.field(field.name):
                line(f"{value} = {message}.{field.name}")
            with block(f"if {self.differs(field, value)}:"):
                outer, parts = self.write, unique("parts")
                self.write = unique("w")
                line(f"{parts} = []")
                line(f"{self.write} = {parts}.append")
                self.field(field, struct, value)
                self.flush()
                line(f"{tags}.append(tagged({field.tag}, join({parts})))")
                self.write = outer
        line(f"{self.write}(encode_unsigned_varint(len({tags})))")
        line(f"{self.write}(join({tags}))")

    def differs(self, field: Field, value: str) -> str:
        """The condition that this value is not the default."""
        if field.default is None:
            return f"{value} is not None"
        if field.array:
            return f"{value} is None or len({value})" if field.nullable else f"len({value})"
        if field.struct is not None:
            assert field.struct.cls is not None
            return f"{value} != {self.source.bind('default', field.struct.cls())}"
        return f"{value} != {self.source.bind('default', field.default)}"
