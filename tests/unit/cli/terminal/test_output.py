# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import json

from strandline.cli.terminal.output import print_json, print_table


def test_a_table_without_a_terminal_is_plain(capsys):
    print_table(("node", "alive", "roles", "rack"), [(1, True, ["broker", "controller"], None)])
    assert capsys.readouterr().out == "node\talive\troles\track\n1\tyes\tbroker,controller\t-\n"


def test_no_rows_say_so_on_stderr(capsys):
    print_table(("name",), [], empty="no topics")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "no topics\n"


def test_json_is_ascii_and_keeps_its_letters(capsys):
    print_json([{"name": "토픽"}])
    out = capsys.readouterr().out
    assert out.isascii(), "no mark that turns the direction of text, and no separator of lines (SEC-H3)"
    assert json.loads(out) == [{"name": "토픽"}]
