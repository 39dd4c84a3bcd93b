"""The stories as documentation: a page for each with its pictures and its sentences, and an index, in both languages.

Always true: the same stories give the same bytes, so a test can check that `docs/stories` is up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from strandline.stories.frames import PlayedStory
from strandline.stories.registry import Story
from strandline.stories.render.svg import draw
from strandline.stories.render.words import LANGUAGES, word

INDEX = {
    "en": (
        "# Stories\n\n"
        "Each is a fixed scenario on a simulated cluster of the nodes that are shipped, shown step by step: what every broker "
        "holds, who leads, who is in sync, which answers clients got. `strandline story NAME` plays one in the terminal, `--step` "
        "waits for a key, `--lang ko` shows it in Korean.\n\n"
        "These pages are made by `python -m strandline.stories --write docs/stories`. "
        "[한국어](README.ko.md)\n"
    ),
    "ko": (
        "# 이야기\n\n"
        "실제로 배포되는 노드들을 시뮬레이터의 클러스터에서 실행하는 고정된 시나리오를 한 단계씩 보여 준다. "
        "각 브로커가 갖고 있는 로그, 리더, ISR, 클라이언트가 받은 응답을 볼 수 있다. "
        "터미널에서는 `strandline story NAME --lang ko`로 실행하고, `--step`은 단계마다 키 입력을 기다린다.\n\n"
        "이 문서는 `python -m strandline.stories --write docs/stories`로 만든다. [English](README.md)\n"
    ),
}


def suffix(language: str) -> str:
    return "" if language == "en" else f".{language}"


def picture_name(played: PlayedStory, language: str) -> str:
    flags = "".join("-" + flag.removeprefix("--").replace(" ", "-") for flag in played.options)
    return f"{played.name}{flags}{suffix(language)}.svg"


def pictures(played: PlayedStory) -> dict[str, str]:
    """One for each language, by file name."""
    return {picture_name(played, language): draw(played, language) for language in LANGUAGES}


def page(story: Story, variants: Sequence[PlayedStory], language: str) -> str:
    """The page of one story, from all its variants."""
    other = next(known for known in LANGUAGES if known != language)
    name = {"en": "English", "ko": "한국어"}[other]
    parts = [
        f"# {story.name}",
        story.title.in_language(language),
        f"[{word('stories', language)}](README{suffix(language)}.md) · [{name}]({story.name}{suffix(other)}.md)",
    ]
    for played in variants:
        if played.options:
            parts.append(f"## {' '.join(played.options)}")
        parts += _played(played, language)
    if story.note is not None:
        parts += [f"## {word('note', language)}", story.note.in_language(language)]
    return "\n\n".join(parts) + "\n"


def _played(played: PlayedStory, language: str) -> Iterable[str]:
    command = " ".join(["strandline story", played.name, *played.options, *([] if language == "en" else ["--lang ko"])])
    yield f"```\n{command}\n```"
    if played.settings:
        settings = ", ".join(f"`{name}={value}`" for name, value in played.settings)
        yield f"{word('settings', language)}: {settings}"
    yield f"![{played.name}]({picture_name(played, language)})"
    yield "\n".join(f"{frame.number}. {frame.said.in_language(language)}" for frame in played.frames)
    yield f"**{word('point', language)}.** {played.point.in_language(language)}"


def index(stories: Iterable[Story], language: str) -> str:
    lines = [INDEX[language]]
    for story in stories:
        flags = "".join(f" `{option.flag}`" for option in story.options)
        lines.append(f"- [{story.name}]({story.name}{suffix(language)}.md): {story.title.in_language(language)}{flags}")
    return "\n".join(lines) + "\n"


def page_name(story: Story, language: str) -> str:
    return f"{story.name}{suffix(language)}.md"


def index_name(language: str) -> str:
    return f"README{suffix(language)}.md"
