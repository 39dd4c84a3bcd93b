"""The command line syntax of Kafka's tools, on top of click.

Always true: a long option may be shortened as far as it stays unambiguous (`--boot`, `--part`), as Kafka's own parser allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click


class KafkaCommand(click.Command):
    """A command that takes Kafka's flags."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(context, self.expand(args))

    def expand(self, args: list[str]) -> list[str]:
        """The same arguments, with every shortened option written out."""
        options = {
            name: parameter
            for parameter in self.params
            if isinstance(parameter, click.Option)
            for name in parameter.opts
            if name.startswith("--")
        }
        expanded: list[str] = []
        waiting = iter(args)
        for argument in waiting:
            if argument == "--":
                return [*expanded, argument, *waiting]
            name, equals, value = argument.partition("=")
            if name.startswith("--") and name not in options:
                fitting = [option for option in options if option.startswith(name)]
                if len({id(options[option]) for option in fitting}) == 1:
                    name = fitting[0]
            expanded.append(name + equals + value)
            option = options.get(name)
            if option is not None and not option.is_flag and not equals:
                expanded.extend(next(([value] for value in waiting), []))
        return expanded


def kafka_command(*, epilog: str) -> Callable[[Callable[..., object]], KafkaCommand]:
    return click.command(cls=KafkaCommand, epilog=epilog)


def value_of_option(options: Mapping[str, object], name: str) -> object:
    """The value of an option whose name is known only at run time."""
    return options[name]


def required(value: str | None) -> str:
    """The value of an option that was checked to be given."""
    assert value is not None
    return value


def key_values(pairs: tuple[str, ...], flag: str) -> dict[str, str]:
    """Several `key=value` as a mapping; UsageError if one is not."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{flag} {pair}: write it as key=value")
        found[key.strip()] = value
    return found


def comma_pairs(text: str, flag: str) -> dict[str, str]:
    """The pairs in `k1=v1,k2=[a,b]`; commas within brackets belong to the value, as in kafka-configs."""
    pairs: list[str] = []
    depth, begin = 0, 0
    for position, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            pairs.append(text[begin:position])
            begin = position + 1
    pairs.append(text[begin:])
    found = key_values(tuple(pair for pair in pairs if pair.strip()), flag)
    return {key: value[1:-1] if value[:1] == "[" and value[-1:] == "]" else value for key, value in found.items()}
