"""What `doctor` looks at: this machine, and a cluster.

Always true: a finding is ok, warn or fail; whatever is not ok says what to do about it.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from strandline.cli.topic_admin import TopicView
    from strandline.client.blocking import Admin

OK, WARN, FAIL = "ok", "warn", "fail"
PYTHON_MIN = (3, 11)
JAVA_MIN = 17
OPEN_FILES_MIN = 10_000
FREE_SHARE_MIN = 0.10
JAVA_TIMEOUT_S = 10


class Finding(NamedTuple):
    level: str
    check: str
    found: str
    advice: str = ""


def machine() -> Iterator[Finding]:
    yield python(sys.version_info[:3])
    yield uvloop()
    yield java(os.environ.get("JAVA_HOME"))
    yield open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def python(version: tuple[int, ...]) -> Finding:
    text = ".".join(map(str, version))
    if version[:2] >= PYTHON_MIN:
        return Finding(OK, "Python", text)
    return Finding(FAIL, "Python", text, f"install Python {'.'.join(map(str, PYTHON_MIN))} or newer")


def uvloop() -> Finding:
    from importlib import metadata

    try:
        return Finding(OK, "uvloop", metadata.version("uvloop"))
    except metadata.PackageNotFoundError:
        return Finding(WARN, "uvloop", "not installed", "pip install uvloop: nodes are slower without it")


def java(home: str | None) -> Finding:
    """Only Spark needs it."""
    path = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    advice = f"install a JDK of {JAVA_MIN} or newer; only Spark needs it"
    if path is None:
        return Finding(WARN, "Java", f"not in {home}/bin" if home else "not on the path", advice)
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(WARN, "Java", f"{path} does not run ({error})", advice)
    return java_version(done.stderr + done.stdout, advice)


def java_version(text: str, advice: str) -> Finding:
    match = re.search(r'version "(?:1\.)?(\d+)[^"]*"', text)
    if match is None:
        return Finding(WARN, "Java", "its version is not known", advice)
    shown = match[0].removeprefix("version ").strip('"')
    return Finding(OK, "Java", shown) if int(match[1]) >= JAVA_MIN else Finding(WARN, "Java", shown, advice)


def open_files(limit: int) -> Finding:
    if limit == resource.RLIM_INFINITY:
        return Finding(OK, "open files", "no limit")
    if limit >= OPEN_FILES_MIN:
        return Finding(OK, "open files", f"limit {limit}")
    advice = (
        f"raise the hard limit to {OPEN_FILES_MIN} or more (ulimit -Hn, LimitNOFILE): a partition needs about three"
    )
    return Finding(WARN, "open files", f"limit {limit}", advice)


def disk(where: str, total_bytes: int, usable_bytes: int) -> Finding:
    if total_bytes <= 0:
        return Finding(WARN, "disk", f"{where}: size not known", "look at it with df")
    share = usable_bytes / total_bytes
    found = f"{where}: {usable_bytes / 1e9:.1f} GB of {total_bytes / 1e9:.1f} GB free"
    if share >= FREE_SHARE_MIN:
        return Finding(OK, "disk", found)
    return Finding(WARN, "disk", found, "free some space, or lower retention.ms or retention.bytes")


def cluster(admin: Admin) -> Iterator[Finding]:
    from strandline.cli import topic_admin
    from strandline.errors import KafkaError

    described = admin.describe_cluster(include_fenced_brokers=True)
    live = [broker for broker in described.brokers if broker.node_id not in described.fenced]
    yield Finding(OK, "brokers", ", ".join(f"{broker.node_id} ({broker.host}:{broker.port})" for broker in live))
    for node_id in sorted(described.fenced):
        yield Finding(
            WARN, "brokers", f"{node_id} is fenced", "is its process running, and does it reach the controller?"
        )
    try:
        for node_id, directories in admin.describe_log_dirs([broker.node_id for broker in live]).items():
            for directory in directories:
                where = f"node {node_id}, {directory.path}"
                if directory.error is not None:
                    yield Finding(
                        FAIL, "disk", f"{where}: {directory.error.name}", "replace the disk and restart the node"
                    )
                else:
                    yield disk(where, directory.total_bytes, directory.usable_bytes)
    except KafkaError as error:
        yield Finding(WARN, "disk", f"the brokers do not tell: {error.message}", "look at it with df")
    names = topic_admin.find(admin, None)
    yield from topics(topic_admin.describe(admin, names))


def topics(views: Iterable[TopicView]) -> Iterator[Finding]:
    """Partitions that are not well, then each topic's rule about losing data."""
    views = list(views)
    for view in views:
        yield from partitions(view)
    for view in views:
        verdict = view.verdict
        yield Finding(verdict.level, "durability", f"{view.topic.name} {verdict.sentence}", verdict.advice)


def partitions(view: TopicView) -> Iterator[Finding]:
    from strandline.cli import topic_admin

    for partition in view.topic.partitions:
        name = f"{view.topic.name}-{partition.partition}"
        missing = ", ".join(map(str, sorted(set(partition.replicas) - set(partition.isr))))
        if not topic_admin.has_leader(partition):
            yield Finding(
                FAIL, "partitions", f"{name} has no leader", f"start one of the brokers {_ids(partition.isr)}"
            )
        elif topic_admin.is_under_min_isr(partition, view.min_insync_replicas):
            found = f"{name} has {len(partition.isr)} in sync, below min.insync.replicas={view.min_insync_replicas}"
            yield Finding(FAIL, "partitions", found, f"acks=all is refused until broker {missing or 'more'} is in sync")
        elif topic_admin.is_under_replicated(partition):
            found = f"{name} is under-replicated: {missing} out of sync"
            yield Finding(WARN, "partitions", found, f"is broker {missing} running and catching up?")


def _ids(ids: tuple[int, ...]) -> str:
    return ", ".join(map(str, ids)) or "that hold it"
