"""`elect`: elect the preferred leaders of partitions, or any replica of those without a leader."""

from __future__ import annotations

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.option_values import topic_partition
from strandline.cli.terminal.output import example, json_option, note, print_json, print_table


@click.command(
    epilog=example("strandline elect --all", "strandline elect hello-0 hello-1", "strandline elect hello-0 --unclean")
)
@click.argument("partitions", nargs=-1, metavar="[TOPIC-PARTITION]...")
@access_options
@click.option("--all", "all_", is_flag=True, help="Every partition whose leader is not its preferred one.")
@click.option(
    "--unclean", is_flag=True, help="For partitions without a leader, also an out-of-sync replica: data may be lost."
)
@json_option
def elect(partitions: tuple[str, ...], access: Access, all_: bool, unclean: bool, as_json: bool) -> int:
    """Elect the preferred leader of partitions, if it is in sync.

    The preferred leader is the first replica: with it, leaders are spread as evenly as replicas were placed. With --unclean,
    --all means every partition without a leader instead.
    """
    from strandline.cli.elections import election_admin

    if all_ == bool(partitions):
        raise click.UsageError("name partitions like hello-0, or give --all")
    elected = election_admin.elect(access, unclean, None if all_ else [topic_partition(text) for text in partitions])
    rows = [
        *((*key, "elected", None) for key in elected.done),
        *((*key, "not needed", None) for key in elected.not_needed),
        *((*key, "failed", why) for key, why in elected.failed.items()),
    ]
    if as_json:
        print_json([dict(zip(("topic", "partition", "result", "reason"), row, strict=True)) for row in rows])
    else:
        print_table(("topic", "partition", "result", "reason"), rows, empty=_nothing(unclean))
    if elected.failed:
        note(f"{len(elected.failed)} of {len(rows)} elections failed")
        return 1
    return 0


def _nothing(unclean: bool) -> str:
    return (
        "every partition has a leader"
        if unclean
        else "every partition is led by its preferred leader, or that one is not in sync"
    )
