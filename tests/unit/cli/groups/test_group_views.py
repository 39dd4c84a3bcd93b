"""Tables of groups on a terminal: what is left out, and what is shortened."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.cli.groups.group_views import MEMBER_COLUMNS, OFFSET_COLUMNS, STATE_COLUMNS, fitted, shortened

ID = "consumer-readers-1-f3b41d52-1f1f-4a5c-9f57-c15cf2c1d3a1"


def offset_row(
    index: int, member: str | None = ID, client: str = "consumer-1", host: str = "/10.0.0.1"
) -> list[object]:
    return ["hello", index, 10, 20, 10, member, *((client, host) if member else (None, None))]


def width_of(columns: list[str], rows: list[list[object]]) -> int:
    return max(
        len("  ".join(str(cell).ljust(len(name)) for name, cell in zip(columns, row, strict=True))) for row in rows
    )


def test_a_wide_terminal_shows_all_of_it():
    rows = [offset_row(0), offset_row(1)]
    assert fitted(OFFSET_COLUMNS[1:], rows, 200) == (list(OFFSET_COLUMNS[1:]), rows)


def test_a_narrow_one_is_spared_what_repeats_and_the_middle_of_ids():
    columns, rows = fitted(OFFSET_COLUMNS[1:], [offset_row(0), offset_row(1)], 80)
    assert columns == ["topic", "partition", "offset", "end", "lag", "member"]
    assert width_of(columns, rows) <= 80
    shown = str(rows[0][-1])
    assert shown.startswith("consumer-readers-1-f")
    assert shown.endswith("c15cf2c1d3a1")


def test_what_differs_stays():
    columns, _ = fitted(OFFSET_COLUMNS[1:], [offset_row(0), offset_row(1, host="/10.0.0.2")], 80)
    assert "host" in columns
    assert "client" not in columns


def test_only_what_is_needed_is_left_out():
    columns, rows = fitted(OFFSET_COLUMNS[1:], [offset_row(0, "short")], 60)
    assert columns[-2:] == ["member", "client"]
    assert rows[0][-2:] == ["short", "consumer-1"]


def test_columns_that_say_nothing_are_left_out_at_any_width():
    assert fitted(OFFSET_COLUMNS[1:], [offset_row(0, None)], 200)[0] == ["topic", "partition", "offset", "end", "lag"]


def test_a_goal_that_is_reached_is_not_shown_twice():
    row = ["m", "c", "/h", None, 1, 3, "hello:0", "hello:0"]
    assert fitted(MEMBER_COLUMNS[1:], [row], 200)[0][-1] == "assignment"
    assert fitted(MEMBER_COLUMNS[1:], [row, [*row[:-1], "hello:1"]], 200)[0][-1] == "target"
    state = ["g", "Consumer", "Stable", 1, "127.0.0.1:9092 (1)", "uniform", 2, 2]
    assert fitted(STATE_COLUMNS, [state], 200)[0][-1] == "epoch"
    assert fitted(STATE_COLUMNS, [[*state[:-1], 1]], 200)[0][-1] == "target epoch"


def test_ids_lose_their_middle():
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghij", 7) == "abc…hij"
    assert shortened("abcdefghij", 6) == "abc…ij"
