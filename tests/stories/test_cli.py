"""`strandline story`: the list, one story, and what is refused."""

from __future__ import annotations

import json
import pathlib

import pytest

from strandline.cli.main import run
from strandline.stories.registry import ORDER


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["story"]) == 0
    names = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert names == [name for name in ORDER if name in names]
    assert run(["story", "--lang", "ko"]) == 0
    assert "커밋" in capsys.readouterr().out


def test_a_story_in_both_languages_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["story", "commit"]) == 0
    assert "1 leader e0   │0:message1 e0│" in capsys.readouterr().out
    assert run(["story", "commit", "--lang", "ko"]) == 0
    assert "1 리더 e0   │0:message1 e0│" in capsys.readouterr().out
    assert run(["story", "commit", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [message["name"] for message in told["frames"][-1]["lanes"][0]["rows"][0]["messages"]] == [
        "message1",
        "message2",
    ]


def test_a_picture(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "story.svg"
    assert run(["story", "epoch-loss", "--without", "leader-epochs", "--svg", str(picture)]) == 0
    assert "LOST: message2" in picture.read_text()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["comit"], "did you mean 'commit'?"),
        (["commit", "--unclean"], "'commit' does not know --unclean"),
        (["epoch-loss", "--acks", "1"], "it knows --without leader-epochs"),
        (["commit", "--without", "luck"], "leader-epochs"),
        (["commit", "--step"], "there is no terminal"),
    ],
)
def test_what_is_refused(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["story", *arguments]) == 2
    assert says in capsys.readouterr().err
