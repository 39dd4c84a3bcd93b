"""The reference of all APIs as Markdown, printed from the table and each file's own docstring.

`python -m strandline.api.reference > docs/apis.md` makes the page; a test holds the page and the table together.

Always true: what a file says at its top about its versions is what it serves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from strandline.api.table import ALL, Api

OPENING = """# APIs

Strandline speaks Kafka's own protocol. This page is printed from the table in `src/strandline/api/table.py`, which also
dispatches requests and answers ApiVersions, and from the text at the top of each API's file. *Left out* is what Apache Kafka
does and we do not.

A version outside of its range ends the connection, as in Kafka; only ApiVersions is answered in any version. A client's request
that reaches a controller's listener is answered MISMATCHED_ENDPOINT_TYPE where its version has a place for an error; else the
connection ends, and the node's log says why.
A request that changes the cluster may be sent to any broker, which passes it on to the active controller.
Requests on one connection are pipelined: a Produce or an OffsetCommit that waits to be replicated does not hold up the next
request; replies keep the order of their requests.
On Produce every batch is checked before it is written: header, checksum, and each record inside, compressed or not. What a leader
sends to its followers was checked then, and is not walked again.

"""

_FIRST_LINE = re.compile(
    r"(?P<name>\w+) \((?P<key>\d+)\)(?P<there> on a controller's listener)?, "
    r"versions? (?P<versions>\d+(?:-\d+)?): (?P<sentence>\S.*)"
)
_LEFT_OUT = "Left out: "


class ApiEntry(NamedTuple):
    """One API as its file describes it."""

    name: str
    key: int
    versions: str
    sentence: str
    notes: str
    """What changed by version, and what else is to be known."""
    left_out: str
    where: str
    """Who serves it."""


def entry(api: Api) -> ApiEntry:
    """ValueError if the docstring is not in the form of an API's."""
    first, _, rest = api.doc.partition("\n")
    match = _FIRST_LINE.fullmatch(first)
    notes, found, left_out = rest.partition(_LEFT_OUT)
    if match is None or not found:
        raise ValueError(
            f"the docstring of API {api.key} must begin 'Name (key), versions a-b: …' and end 'Left out: …'"
        )
    return ApiEntry(
        f"{match['name']} on a controller" if match["there"] else match["name"],
        int(match["key"]),
        match["versions"],
        match["sentence"],
        " ".join(notes.split()),
        " ".join(left_out.split()),
        _where(api),
    )


def _where(api: Api) -> str:
    if api.forwarded:
        return "broker, for the controller"
    return " and ".join(api.listeners)


def reference() -> str:
    """The whole page."""
    return "".join(_lines())


def _lines() -> Iterator[str]:
    entries = [entry(api) for api in sorted(ALL, key=lambda api: (api.key, api.listeners))]
    yield OPENING
    yield "| Key | API | Versions | Served by | |\n| --- | --- | --- | --- | --- |\n"
    for api in entries:
        anchor = api.name.lower().replace(" ", "-")
        yield f"| {api.key} | [{api.name}](#{anchor}) | {api.versions} | {api.where} | {api.sentence} |\n"
    for api in entries:
        versions = f"{'versions' if '-' in api.versions else 'version'} {api.versions}"
        yield f"\n## {api.name}\n\nKey {api.key}, {versions}, served by {api.where}: {api.sentence}\n"
        if api.notes:
            yield f"\n{api.notes}\n"
        yield f"\n*Left out:* {api.left_out}\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(reference())
