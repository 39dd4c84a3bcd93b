"""Writes the stubs of this package from the schemas: `python -m strandline.wire.stubs`; with `--check` only compares.

Always true: a class has every field that any version of its message has, as the classes at run time do (`wire/message.py`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from strandline.wire import messages, schemas
from strandline.wire.message import Family
from strandline.wire.structs import FIXED, Field, Struct

FOLDER = Path(__file__).parent
OPENING = (
    '"""{title}\n\nWritten by `python -m strandline.wire.stubs` from the schemas: not for editing by hand.\n"""\n\n'
)

_TYPES = {"bool": "bool", "float64": "float", "uuid": "Uuid", "string": "str", "bytes": "bytes", "records": "Buffer"}
"""What a field of this type is in Python; all the others are integers. Record batches are sent from where they lie."""


class VersionedField(NamedTuple):
    """A field of one struct, merged over the versions that have it."""

    type: str
    versions: list[int]


def stubs() -> dict[str, str]:
    """The text of every stub by the name of its file."""
    requests: dict[int, str] = {}
    responses: dict[int, str] = {}
    texts = {}
    for key in schemas.api_keys():
        request, response = messages.request_family(key), messages.response_family(key)
        module = schemas.request(key).name
        requests[key] = f"{module}.{request.root.__name__}"
        responses[key] = f"{module}.{response.root.__name__}"
        name = request.root.__name__.removesuffix("Request")
        texts[f"{module}.pyi"] = "".join(_api_module(f"{name} ({key})", request, response))
    data = {name: messages.data_family(name) for name in schemas.DATA_NAMES}
    texts["data.pyi"] = "".join(_data_module(data))
    texts["by_key.pyi"] = "".join(_overloads(requests, responses, list(data)))
    return texts


def _api_module(title: str, request: Family, response: Family) -> Iterator[str]:
    yield OPENING.format(title=f"{title}: its request, versions {_range(request)}, and its response.")
    classes = [*_classes(response, "ApiResponse"), *_classes(request, f"ApiRequest[{response.root.__name__}]")]
    text = "".join(classes)
    if "Sequence[" in text:
        yield "from collections.abc import Sequence\n\n"
    if "Uuid" in text:
        yield "from strandline.ids import Uuid\n"
    if "Buffer" in text:
        yield "from strandline.wire.codec import Buffer\n"
    used = [name for name in ("ApiRequest", "ApiResponse", "TypedMessage") if f"({name}" in text]
    yield f"from strandline.wire.stubs.base import {', '.join(used)}\n\n"
    yield text.rstrip("\n") + "\n"


def _data_module(families: dict[str, Family]) -> Iterator[str]:
    yield OPENING.format(title="Messages that are no request or response: headers, control records, consumer protocol.")
    text = "".join("".join(_classes(family, "TypedMessage")) for family in families.values())
    if "Sequence[" in text:
        yield "from collections.abc import Sequence\n\n"
    if "Uuid" in text:
        yield "from strandline.ids import Uuid\n"
    yield "from strandline.wire.stubs.base import TypedMessage\n\n"
    yield text.rstrip("\n") + "\n"


def _range(family: Family) -> str:
    return f"{family.versions[0]}-{family.versions[-1]}"


def _classes(family: Family, base: str) -> Iterator[str]:
    """The root's class with those of all nested structs inside it, as `wire/message.py` publishes them."""
    structs = _structs(family)
    root = family.root.__name__
    yield f"class {root}({base}):\n"
    for name, fields in structs.items():
        if name != root:
            yield f"    class {name}(TypedMessage):\n"
            yield from _fields(fields, family, "        ")
            yield "\n"
    yield from _fields(structs[root], family, "    ")
    yield "\n"


def _structs(family: Family) -> dict[str, dict[str, VersionedField]]:
    """Each struct's fields; the newest version comes first and gives the order."""
    structs: dict[str, dict[str, VersionedField]] = {}
    for version in reversed(family.versions):
        _merge(family.struct(version), version, family.root.__name__, structs)
    return structs


def _merge(struct: Struct, version: int, root: str, structs: dict[str, dict[str, VersionedField]]) -> None:
    fields = structs.setdefault(struct.name, {})
    for field in struct.fields:
        merged = fields.setdefault(field.name, VersionedField("", []))
        fields[field.name] = VersionedField(_either(merged.type, _type(field, root)), [version, *merged.versions])
        if field.struct is not None:
            _merge(field.struct, version, root, structs)


def _type(field: Field, root: str) -> str:
    if field.struct is not None:
        name = f"{root}.{field.struct.name}"
    else:
        name = _TYPES.get(field.type, "int")
        assert name != "int" or field.type in FIXED
    if field.array:
        # Plain values are often given as tuples. A text is no array of texts, though it is a sequence of them.
        name = f"list[{name}]" if field.struct is not None or name == "str" else f"Sequence[{name}]"
    # Records are null by default, also where no version lets null be sent.
    return f"{name} | None" if field.nullable or field.type == "records" or field.default is None else name


def _either(one: str, other: str) -> str:
    """The type of a field that has these types in different versions."""
    plain = {one.removesuffix(" | None"), other.removesuffix(" | None")} - {""}
    null = " | None" if " | None" in one + other else ""
    return " | ".join(sorted(plain)) + null


def _fields(fields: dict[str, VersionedField], family: Family, indent: str) -> Iterator[str]:
    if not fields:
        yield f"{indent}...\n"
    for name, field in fields.items():
        line = f"{indent}{name}: {field.type} = ..."
        yield f"{line}  # {note}\n" if (note := _versions_note(sorted(set(field.versions)), family)) else f"{line}\n"


def _versions_note(versions: list[int], family: Family) -> str:
    """Which versions have the field; nothing if all have it."""
    assert all(later == earlier + 1 for earlier, later in pairwise(versions))
    if versions == list(family.versions):
        return ""
    if versions[-1] == family.versions[-1]:
        return f"since v{versions[0]}"
    return f"v{versions[0]}" if versions[0] == versions[-1] else f"v{versions[0]}-v{versions[-1]}"


def _overloads(requests: dict[int, str], responses: dict[int, str], data: list[str]) -> Iterator[str]:
    yield OPENING.format(title="The functions of `wire/messages.py` that know the class from a literal key or name.")
    yield "from typing import Any, Literal, overload\n\n"
    yield "from strandline.wire.codec import Buffer\n"
    yield "from strandline.wire.stubs import (\n"
    yield "".join(f"    {module},\n" for module in sorted({name.partition(".")[0] for name in requests.values()}))
    yield ")\n"
    yield "from strandline.wire.stubs import data as data_messages\n\n"
    where = "version: int, buffer: Buffer, position: int = 0"
    by_name = {name: f"data_messages.{name}" for name in data}
    for function, key, classes in (
        ("request", "api_key", requests),
        ("response", "api_key", responses),
        ("data", "name", by_name),
    ):
        for literal, cls in classes.items():
            yield f"@overload\ndef {function}({key}: Literal[{_literal(literal)}]) -> type[{cls}]: ...\n"
        yield f"@overload\ndef {function}({key}: {'int' if key == 'api_key' else 'str'}) -> Any: ...\n"
    for function, key, classes in (
        ("decode_request", "api_key", requests),
        ("decode_response", "api_key", responses),
        ("decode_data", "name", by_name),
    ):
        for literal, cls in classes.items():
            yield _decode_overload(function, f"{key}: Literal[{_literal(literal)}], {where}", cls)
        yield _decode_overload(function, f"{key}: {'int' if key == 'api_key' else 'str'}, {where}", "Any")


def _decode_overload(function: str, arguments: str, returned: str) -> str:
    """Formatted as ruff would."""
    line = f"def {function}({arguments}) -> {returned}: ..."
    if len(line) > 120:
        line = f"def {function}(\n    {arguments}\n) -> {returned}: ..."
    return f"@overload\n{line}\n"


def _literal(value: int | str) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def stale() -> list[str]:
    """Names of the files that differ from what the schemas say, or that no schema has."""
    texts = stubs()
    kept = {path.name: path.read_text() for path in FOLDER.glob("*.pyi") if path.name != "base.pyi"}
    return sorted(name for name in texts.keys() | kept.keys() if texts.get(name) != kept.get(name))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the stubs of Kafka's messages from the schemas.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a stub is not what the schemas say"
    )
    check = parser.parse_args().check
    names = stale()
    if check and names:
        sys.exit(f"stale stubs of messages: {', '.join(names)}; write them with `python -m strandline.wire.stubs`")
    texts = stubs() if names else {}
    for name in names:
        path = FOLDER / name
        if name in texts:
            path.write_text(texts[name])
        else:
            path.unlink()


if __name__ == "__main__":
    main()
