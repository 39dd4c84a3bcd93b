"""The names of all options."""

from __future__ import annotations

import pytest

from strandline.spark.errors import OptionError
from strandline.spark.options.names import READ, sorted_out


def test_names_in_any_case_become_canonical() -> None:
    ours, kafka, warnings = sorted_out({"STARTINGoffsets": "x", "Kafka.Bootstrap.Servers": "y"}, writing=False)
    assert (ours, kafka, warnings) == ({"startingOffsets": "x"}, {"bootstrap.servers": "y"}, [])


def test_every_name_is_known_in_lower_case() -> None:
    assert sorted_out(dict.fromkeys([name.lower() for name in READ], "x"), writing=False)[0].keys() == set(READ)


def test_sparks_own_are_let_through() -> None:
    own = {"checkpointLocation": "x", "path": "x", "queryName": "x", "__partition_columns": "[]"}
    assert sorted_out(own, writing=True) == ({}, {}, [])


def test_an_option_of_the_other_side_is_a_warning() -> None:
    assert sorted_out({"failOnDataLoss": "x"}, writing=True)[2] == [
        "option 'failOnDataLoss' has no effect here: it is one of the source"
    ]
    assert "one of the sink" in sorted_out({"topic": "x"}, writing=False)[2][0]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("failOnDataloos", "option 'failOnDataloos' is unknown; did you mean 'failOnDataLoss'?"),
        ("startingOffset", "did you mean 'startingOffsets'?"),
        ("bootstrap.servers", "did you mean 'kafka.bootstrap.servers'?"),
        ("isolation.level", "did you mean 'kafka.isolation.level'?"),
        ("zzz", "option 'zzz' is unknown; the options are assign, columns,"),
    ],
)
def test_an_unknown_one_is_refused_with_the_nearest(name: str, says: str) -> None:
    with pytest.raises(OptionError) as refused:
        sorted_out({name: "x"}, writing=False)
    assert says in str(refused.value)
