"""`config-reference`: every configuration key, as in `docs/config.md`."""

from __future__ import annotations

import click

from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, print_json


@click.command(epilog=example("strandline config-reference > docs/config.md"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of Markdown.")
def config_reference(as_json: bool) -> None:
    """Print every configuration key as Markdown."""
    from strandline.config.reference import reference

    if not as_json:
        echo(reference(), nl=False)
        return
    from strandline.config.broker import BROKER
    from strandline.config.key import REQUIRED
    from strandline.config.topic import TOPIC
    from strandline.config.types import show

    print_json(
        [
            {
                "name": key.name,
                "where": key.where.value,
                "type": key.type.name.lower(),
                "default": None if key.default is REQUIRED or key.default is None else show(key.default_value),
                "required": key.default is REQUIRED,
                "treatment": key.treatment.value,
                "dynamic": key.dynamic.value,
                "importance": key.importance.value,
                "doc": key.doc,
            }
            for keys in (TOPIC, BROKER)
            for key in sorted(keys.values(), key=lambda key: key.name)
        ]
    )
