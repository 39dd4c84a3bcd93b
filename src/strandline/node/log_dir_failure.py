"""What happens when a log dir fails: it is offline, and so are its partitions, until the node is started again.

Always true: one I/O error is enough, and nothing is tried again; a process that has no descriptor left has not
failed (SEC-L5). When the last dir is offline the node ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from strandline.node.limited_log import LimitedLog
from strandline.node.log_dirs import LogDir
from strandline.node.logger import Logger
from strandline.node.signals import ReplicaSignals
from strandline.ports import Clock, is_out_of_handles
from strandline.replica.partition import Partition


class LogDirFailureHandler:
    def __init__(
        self,
        log_dirs: Sequence[LogDir],
        partitions_in: Callable[[LogDir], Iterable[Partition]],
        signals: ReplicaSignals,
        clock: Clock,
        logger: Logger,
        on_all_failed: Callable[[str], None],
    ) -> None:
        self._log_dirs = log_dirs
        self._partitions_in = partitions_in
        self._signals = signals
        self._clock = clock
        self._logger = logger
        self._limited = LimitedLog(logger)
        self._on_all_failed = on_all_failed

    def failed(self, log_dir: LogDir, error: OSError) -> None:
        """It is offline from now on; unless it is the process that has no descriptor left, which is tried again."""
        if not log_dir.online:
            return
        if is_out_of_handles(error):
            self._limited.warning(
                "no descriptor is left: raise the limit of open files (ulimit -n)",
                self._clock.monotonic(),
                path=log_dir.path,
                error=str(error),
            )
            return
        log_dir.online = False
        self._logger.error("log dir failed and is offline until a restart", path=log_dir.path, error=str(error))
        failed = list(self._partitions_in(log_dir))
        # All of them first: what reacts to one may look at the others.
        for partition in failed:
            partition.offline = True
        for partition in failed:
            partition.fail()
            self._signals.role_changed(partition)
        self._signals.dir_failed(log_dir)
        if not any(other.online for other in self._log_dirs):
            self._on_all_failed(f"every log dir failed, the last one with: {error}")
