"""The stubs say what the classes at run time have, and `--check` notices when they do not."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="union-attr"

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.wire import messages, schemas
from strandline.wire.stubs import __main__ as writer

ROOTS = {
    **{messages.request_family(key).root.__name__: messages.request_family(key) for key in schemas.api_keys()},
    **{messages.response_family(key).root.__name__: messages.response_family(key) for key in schemas.api_keys()},
    **{messages.data_family(name).root.__name__: messages.data_family(name) for name in schemas.DATA_NAMES},
}


def described() -> dict[str, dict[str, set[str]]]:
    """From the stubs: of each message the fields of each of its structs."""
    found = {}
    for path in sorted(writer.FOLDER.glob("*.pyi")):
        if path.name in ("base.pyi", "by_key.pyi"):
            continue
        for cls in ast.parse(path.read_text()).body:
            if isinstance(cls, ast.ClassDef):
                nested = [each for each in cls.body if isinstance(each, ast.ClassDef)]
                found[cls.name] = {each.name: fields(each) for each in (cls, *nested)}
    return found


def fields(cls: ast.ClassDef) -> set[str]:
    return {each.target.id for each in cls.body if isinstance(each, ast.AnnAssign)}


def test_stubs_have_every_struct_and_field_that_the_classes_have():
    stubs = described()
    assert stubs.keys() == ROOTS.keys()
    for name, family in ROOTS.items():
        family.complete()
        assert stubs[name] == {struct: set(cls._fields) for struct, cls in family.classes.items()}


@pytest.mark.parametrize("change", ["edited", "missing", "one too many"])
def test_a_stale_stub_is_named(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, text in writer.stubs().items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(writer, "FOLDER", tmp_path)
    assert writer.stale() == []
    path = tmp_path / "create_topics.pyi"
    if change == "edited":
        path.write_text(path.read_text().replace("timeout_ms: int", "timeout_ms: str"))
    elif change == "missing":
        path.unlink()
    else:
        path = tmp_path / "removed_api.pyi"
        path.write_text("")
    assert writer.stale() == [path.name]


def test_a_start_loads_no_stub():
    code = "import sys, strandline.api.table; sys.exit(any('wire.stubs' in name for name in sys.modules))"
    subprocess.run([sys.executable, "-c", code], check=True)
