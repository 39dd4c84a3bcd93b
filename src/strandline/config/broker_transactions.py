"""Broker keys: producers, transactions and their log.

Always true: a transaction that outlives its timeout is aborted by the coordinator.
"""

from __future__ import annotations

from strandline.config.key import CLUSTER_WIDE, HIGH, LOW, READ_ONLY, Key
from strandline.config.types import (
    AT_LEAST_0,
    AT_LEAST_1,
    BOOLEAN,
    DAY_MS,
    HOUR_MS,
    INT,
    MIB,
    MINUTE_MS,
    SECOND_MS,
    SHORT,
)

# fmt: off
KEYS = (
    Key("producer.id.expiration.ms", INT, DAY_MS, AT_LEAST_1, LOW, CLUSTER_WIDE,
        "A producer id that wrote nothing for this long is forgotten by its partitions."),
    Key("producer.id.max.per.partition", INT, 100_000, AT_LEAST_1, LOW, READ_ONLY,
        "The most producer ids that a partition remembers; for one more, those that were silent longest are forgotten before "
        "their time. No more than nine tenths of them may have a transaction open there."),
    Key("producer.id.expiration.check.interval.ms", INT, 10 * MINUTE_MS, AT_LEAST_1, LOW, READ_ONLY,
        "How often producer ids are looked at for that.", internal=True),
    Key("transactional.id.expiration.ms", INT, 7 * DAY_MS, AT_LEAST_1, HIGH, READ_ONLY,
        "A transactional id that was silent for this long is forgotten by the coordinator."),
    Key("transaction.max.timeout.ms", INT, 15 * MINUTE_MS, AT_LEAST_1, HIGH, READ_ONLY,
        "The longest transaction timeout a producer may ask for."),
    Key("transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW, READ_ONLY,
        "Whether a producer may ask for transactions without a timeout, because another system decides how they end (two-phase "
        "commit, KIP-939): with InitProducerId 6, which needs unstable.api.versions.enable too."),
    Key("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10 * SECOND_MS, AT_LEAST_1, LOW, READ_ONLY,
        "How often transactions past their timeout are aborted."),
    Key("transaction.remove.expired.transaction.cleanup.interval.ms", INT, HOUR_MS, AT_LEAST_1, LOW, READ_ONLY,
        "How often expired transactional ids are removed."),
    Key("transaction.partition.verification.enable", BOOLEAN, True, None, LOW, CLUSTER_WIDE,
        "Whether a partition asks the coordinator before it takes a transaction's first record."),
    Key("transaction.state.log.num.partitions", INT, 50, AT_LEAST_1, HIGH, READ_ONLY,
        "The partitions of the transaction log; it must not change once the topic exists."),
    Key("transaction.state.log.replication.factor", SHORT, 3, AT_LEAST_1, HIGH, READ_ONLY,
        "The replicas of the transaction log."),
    Key("transaction.state.log.min.isr", INT, 2, AT_LEAST_1, HIGH, READ_ONLY,
        "min.insync.replicas of the transaction log."),
    Key("transaction.state.log.segment.bytes", INT, 100 * MIB, AT_LEAST_1, HIGH, READ_ONLY,
        "The segment size of the transaction log."),
    Key("add.partitions.to.txn.retry.backoff.ms", INT, 20, AT_LEAST_1, HIGH, READ_ONLY,
        "The wait before a partition is again added to a transaction whose predecessor is still ending."),
    Key("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, AT_LEAST_0, HIGH, READ_ONLY,
        "The longest time the broker itself tries that before it tells the producer."),
)
# fmt: on
