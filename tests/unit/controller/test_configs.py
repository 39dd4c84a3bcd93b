"""Decisions about configuration: only the difference is written, and only if the whole is valid."""

from __future__ import annotations

import pytest

from strandline.config.alter import Alteration, Op
from strandline.config.layers import DEFAULTS
from strandline.controller import configs
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, MetadataImage

from .conftest import after, broker, cluster

IMAGE = after(
    cluster(broker(1)),
    [
        r.TopicRecord(name="orders", topic_id=Uuid(bytes(16))),
        r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="orders", name="retention.ms", value="5"),
        r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="orders", name="segment.ms", value="7"),
    ],
)


def written(records: list[r.MetadataRecord]) -> dict[str, str | None]:
    assert all(isinstance(record, r.ConfigRecord) for record in records)
    return {record.name: record.value for record in records if isinstance(record, r.ConfigRecord)}


def alter(*alterations: Alteration, kind: int = TOPIC_RESOURCE, name: str = "orders") -> dict[str, str | None]:
    return written(configs.alter(IMAGE, kind, name, alterations, DEFAULTS))


def test_only_what_changes_is_written() -> None:
    changes = alter(
        Alteration("retention.ms", Op.SET, "5"),
        Alteration("segment.ms", Op.DELETE, None),
        Alteration("flush.ms", Op.SET, "9"),
        Alteration("cleanup.policy", Op.APPEND, "compact"),
    )
    assert changes == {"segment.ms": None, "flush.ms": "9", "cleanup.policy": "delete,compact"}


def test_replacing_removes_the_others() -> None:
    records = configs.replace(IMAGE, TOPIC_RESOURCE, "orders", {"retention.ms": "6"}, DEFAULTS)
    assert written(records) == {"retention.ms": "6", "segment.ms": None}
    image = after(IMAGE, records)
    assert image.config(TOPIC_RESOURCE, "orders") == {"retention.ms": "6"}
    assert configs.replace(image, TOPIC_RESOURCE, "orders", {"retention.ms": "6"}, DEFAULTS) == []


def test_brokers_one_and_all() -> None:
    change = Alteration("log.retention.ms", Op.SET, "100")
    assert alter(change, kind=BROKER_RESOURCE, name="1") == {"log.retention.ms": "100"}
    assert alter(change, kind=BROKER_RESOURCE, name="") == {"log.retention.ms": "100"}


@pytest.mark.parametrize(
    ("kind", "name", "alteration", "code"),
    [
        (TOPIC_RESOURCE, "", Alteration("retention.ms", Op.SET, "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC_RESOURCE, "other", Alteration("retention.ms", Op.SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "orders", Alteration("no.such.key", Op.SET, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "orders", Alteration("retention.ms", Op.SET, "soon"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "orders", Alteration("retention.ms", Op.SET, None), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "orders", Alteration("retention.ms", Op.APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (BROKER_RESOURCE, "2", Alteration("log.retention.ms", Op.SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "one", Alteration("log.retention.ms", Op.SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "²", Alteration("log.retention.ms", Op.SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "1", Alteration("node.id", Op.SET, "2"), ErrorCode.INVALID_CONFIG),
        (8, "x", Alteration("retention.ms", Op.SET, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_can_not_be_altered(kind: int, name: str, alteration: Alteration, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as error:
        alter(alteration, kind=kind, name=name)
    assert error.value.code is code


def test_only_so_many_groups_are_configured() -> None:
    """SEC-L10: they need not exist, and nothing ever removes what was set for one."""

    def configure(image: MetadataImage, name: str) -> MetadataImage:
        alterations = [Alteration("consumer.session.timeout.ms", Op.SET, "50000")]
        return after(image, configs.alter(image, GROUP_RESOURCE, name, alterations, DEFAULTS, groups_max=2))

    image = configure(configure(IMAGE, "a"), "b")
    with pytest.raises(KafkaError, match=r"group\.config\.max\.resources") as refused:
        configure(image, "c")
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert configure(image, "a").configs == image.configs, "one that has some already may be changed"
