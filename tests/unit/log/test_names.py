"""Names in a log dir, and which topics may have one."""

from __future__ import annotations

import pytest

from strandline.log import names


def test_offsets_in_names_have_twenty_digits() -> None:
    assert names.of_offset(368769, names.INDEX_SUFFIX) == "00000000000000368769.index"
    assert names.offset_of("00000000000000368769.log") == 368769
    assert names.offset_of("09223372036854775807.timeindex") == 2**63 - 1


@pytest.mark.parametrize("name", ["1.log", "", ".log", "leader-epoch-checkpoint", "0000000000000000000x.log"])
def test_other_names_hold_no_offset(name: str) -> None:
    with pytest.raises(ValueError):
        names.offset_of(name)


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", ("orders", 0)),
        ("a-b.c_d-12", ("a-b.c_d", 12)),
        ("orders", None),
        ("-0", None),
        ("orders-", None),
        ("orders-x", None),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", None),
        ("lost+found", None),
    ],
)
def test_partition_directories(name: str, parsed: tuple[str, int] | None) -> None:
    assert names.parse_partition_dir(name) == parsed


@pytest.mark.parametrize("topic", ["orders", "x" * 249, "a-b.c_d"])
def test_a_doomed_directory_is_known_as_such_and_fits_a_file_system(topic: str) -> None:
    name = names.doomed_dir(topic, 2**31 - 1, bytes(16))
    assert len(name) <= 255
    assert names.is_doomed_dir(name)
    assert names.parse_partition_dir(name) is None
    assert not names.is_doomed_dir(names.partition_dir(topic, 0))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "ä", "a b", "a\n", "x" * 250, "a:b"])
def test_what_may_not_be_a_topic(name: str) -> None:
    assert names.topic_name_problem(name)


@pytest.mark.parametrize("name", ["a", "...", "x" * 249, "A-9_z.b", "__consumer_offsets"])
def test_what_may_be_a_topic(name: str) -> None:
    assert names.topic_name_problem(name) is None


def test_dot_and_underscore_collide() -> None:
    assert names.collision_key("a.b_c") == names.collision_key("a_b.c") != names.collision_key("a-b.c")
