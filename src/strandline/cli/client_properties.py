"""Kafka's client properties (`acks=all`, `linger.ms=10`) as settings of our client.

Always true: a property that we do not honour is refused by name, never ignored in silence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import click

from strandline.client.blocking import ConsumerConfig, ProducerConfig
from strandline.records.compression import CompressionType

C = TypeVar("C", ProducerConfig, ConsumerConfig)
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}


def producer_config(properties: Mapping[str, str]) -> ProducerConfig:
    return _build(ProducerConfig, properties, "producer")


def consumer_config(properties: Mapping[str, str]) -> ConsumerConfig:
    return _build(ConsumerConfig, properties, "consumer")


def _build(cls: type[C], properties: Mapping[str, str], what: str) -> C:
    kinds = {field.name: field.type for field in dataclasses.fields(cls)}
    values: dict[str, Any] = {}
    for name, text in properties.items():
        attribute = name.replace(".", "_")
        if attribute not in kinds:
            known = ", ".join(sorted(known.replace("_", ".") for known in kinds))
            raise click.UsageError(f"{name} is no {what} property that is honoured here; these are: {known}")
        try:
            values[attribute] = _parse(attribute, str(kinds[attribute]), text.strip())
        except (ValueError, KeyError):
            raise click.UsageError(f"{name}={text} is not a value for it") from None
    try:
        return cls(**values)
    except ValueError as error:
        raise click.UsageError(str(error).replace("_", ".")) from None


def _parse(attribute: str, kind: str, text: str) -> Any:
    if attribute == "acks":
        return ACKS[text]
    if attribute == "compression_type":
        return CompressionType[text.upper()]
    if kind.startswith("bool"):
        return {"true": True, "false": False}[text.lower()]
    if kind.startswith("int"):
        return int(text)
    return float(text) if kind == "float" else text
