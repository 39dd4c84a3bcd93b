"""The command line syntax of Kafka's tools, on top of click.

Always true: a long option may be shortened as far as it stays unambiguous (`--boot`, `--part`), as Kafka's own parser allows.
"""

from __future__ import annotations

from collections.abc import Callable

import click

from strandline.cli.option_values import key_values


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
