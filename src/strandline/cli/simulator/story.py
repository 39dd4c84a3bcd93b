"""`story`: stories of how a Kafka cluster works, played on a simulated cluster of real nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from strandline.cli.errors import CommandRefused
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, is_terminal, note, print_json, print_table

if TYPE_CHECKING:
    from strandline.stories.frames import PlayedStory
    from strandline.stories.options import Option
    from strandline.stories.render.terminal import Line

LANGUAGES = ("en", "ko")
QUIT = ("q", "Q", "\x1b")


@click.command(
    epilog=example(
        "strandline story",
        "strandline story epoch-loss",
        "strandline story epoch-loss --without leader-epochs --lang ko",
        "strandline story commit --svg commit.svg",
    )
)
@click.argument("name", required=False)
@click.option(
    "--without",
    "mechanisms",
    multiple=True,
    metavar="MECHANISM",
    help="Tell it without this mechanism: leader-epochs, idempotence or high-watermark.",
)
@click.option("--acks", type=click.Choice(["all", "1"]), default="all", help="The acks of the producer.")
@click.option(
    "--lag-by", type=click.Choice(["time", "messages"]), default="time", help="How a follower's lag is measured."
)
@click.option("--unclean", is_flag=True, help="Let a replica that is out of sync be elected.")
@click.option("--step", is_flag=True, help="Wait for a key after each step.")
@click.option("--json", "as_json", is_flag=True, help="Print the frames as JSON.")
@click.option("--svg", "picture", type=click.Path(dir_okay=False), metavar="FILE", help="Draw it as a picture.")
@click.option("--lang", "language", type=click.Choice(LANGUAGES), default="en", help="English or Korean.")
def story(
    name: str | None,
    mechanisms: tuple[str, ...],
    acks: str,
    lag_by: str,
    unclean: bool,
    step: bool,
    as_json: bool,
    picture: str | None,
    language: str,
) -> None:
    """Tell a story of how a Kafka cluster works, step by step; without NAME, list all.

    Each runs real nodes in the simulator and shows the log of every broker. With an option it is told without a mechanism, and
    then it ends with a message that is lost, duplicated, or different on some brokers.
    """
    from strandline.stories import registry
    from strandline.stories.stage import PointMissed

    if name is None:
        _list(language, as_json)
        return
    if step and not (is_terminal() and is_terminal(sys.stdin)):
        raise click.UsageError("--step waits for a key, and there is no terminal")
    try:
        played = registry.play(name, _options(mechanisms, acks, lag_by, unclean))
    except registry.UnknownStory as error:
        raise click.UsageError(f"{error}{_hint(name)}") from None
    except registry.UnknownOption as error:
        raise click.UsageError(str(error)) from None
    except PointMissed as missed:
        raise CommandRefused(f"the story did not end as it should: {missed}") from None
    if picture is not None:
        from strandline.stories.render.svg import draw

        with open(picture, "w", encoding="utf-8") as file:
            file.write(draw(played, language))
    if as_json:
        from strandline.stories.frames import as_json as plain

        print_json(plain(played))
    elif picture is None:
        _print(played, language, step)


def _list(language: str, as_json: bool) -> None:
    from strandline.stories.registry import stories
    from strandline.stories.render.words import word

    known = stories()
    if as_json:
        print_json(
            [
                {"name": s.name, "en": s.title.en, "ko": s.title.ko, "options": [option.flag for option in s.options]}
                for s in known
            ]
        )
        return
    rows = [(s.name, s.title.in_language(language), " ".join(option.flag for option in s.options)) for s in known]
    print_table([word(name, language) for name in ("story", "shows", "also with")], rows)


def _options(mechanisms: Iterable[str], acks: str, lag_by: str, unclean: bool) -> list[Option]:
    from strandline.stories.options import Option

    written = [f"without {mechanism}" for mechanism in mechanisms]
    written += [f"acks {acks}"] if acks != "all" else []
    written += [f"lag-by {lag_by}"] if lag_by != "time" else []
    written += ["unclean"] if unclean else []
    known = {option.value: option for option in Option}
    for text in written:
        if text not in known:
            possible = ", ".join(value for value in known if value.startswith("without"))
            raise click.UsageError(f"there is no story --{text}; possible: {possible}")
    return [known[text] for text in written]


def _hint(name: str) -> str:
    import difflib

    from strandline.stories.registry import stories

    close = difflib.get_close_matches(name, [known.name for known in stories()], 1)
    return f"; did you mean '{close[0]}'?" if close else "; `strandline story` lists them"


def _print(played: PlayedStory, language: str, step: bool) -> None:
    from strandline.stories.render import terminal
    from strandline.stories.render.words import word

    _show(terminal.head(played, language))
    if step:
        note(word("a key", language))
    for frame in played.frames:
        echo()
        _show(terminal.step(frame, language))
        if step and click.getchar() in QUIT:
            return
    echo()
    _show(terminal.end(played, language))


def _show(lines: Iterable[Line]) -> None:
    from strandline.stories.render.terminal import plain

    if not is_terminal():
        for line in lines:
            echo(plain(line))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((span.text, span.style) for span in line)))
