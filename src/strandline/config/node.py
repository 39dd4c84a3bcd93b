"""The configuration of one node, typed and whole.

Always true: it was checked as a whole when it was built and never changes; new dynamic values make a new one
(`with_dynamic`). The node uses nothing that is not an attribute here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from strandline.config.address import parse_address
from strandline.config.broker import BROKER
from strandline.config.errors import ConfigError
from strandline.config.key import REQUIRED
from strandline.config.layers import EMPTY, Layers
from strandline.config.listeners import (
    ListenerConfig,
    brokers_among_clients,
    build_listeners,
    is_loopback,
    parse_protocol_map,
)
from strandline.config.properties import Properties
from strandline.config.quorum import BootstrapServer, Voter, check_membership, parse_bootstrap_servers, parse_voters
from strandline.config.topic_config import TopicConfig
from strandline.config.types import Values, show

__all__ = ["NodeConfig", "TopicConfig"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NodeConfig:
    """An attribute is named as its key, with underscores. The first ones are worked out from several keys.

    It has no repr of its own: `layers` holds secrets as text.
    """

    node_id: int
    broker: bool
    controller: bool
    listeners: tuple[ListenerConfig, ...]
    inter_broker_listener: str
    previous_inter_broker_listener: str | None
    controller_listener_names: tuple[str, ...]
    protocols: Mapping[str, str]
    quorum_voters: tuple[Voter, ...]
    quorum_bootstrap_servers: tuple[BootstrapServer, ...]
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    topic_defaults: TopicConfig
    layers: Layers
    warnings: tuple[str, ...]

    # Life in the cluster.
    broker_rack: str | None
    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    initial_broker_registration_timeout_ms: int
    controlled_shutdown_enable: bool
    request_timeout_ms: int

    # The quorum and its log.
    controller_quorum_election_timeout_ms: int
    controller_quorum_election_backoff_max_ms: int
    controller_quorum_fetch_timeout_ms: int
    controller_quorum_request_timeout_ms: int
    controller_quorum_retry_backoff_ms: int
    controller_quorum_fetch_max_bytes: int
    controller_quorum_fetch_snapshot_max_bytes: int
    metadata_log_segment_bytes: int
    internal_metadata_log_segment_bytes: int | None
    metadata_log_segment_ms: int
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    metadata_max_retention_bytes: int
    metadata_max_retention_ms: int
    metadata_max_idle_interval_ms: int

    # Connections and requests.
    socket_listen_backlog_size: int
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    queued_max_request_bytes: int
    queued_max_response_bytes: int
    queued_max_response_bytes_per_connection: int
    socket_receive_stalled_timeout_ms: int
    socket_send_stalled_timeout_ms: int
    unstable_api_versions_enable: bool
    ssl_handshake_timeout_ms: int
    connections_max_idle_ms: int
    max_connections: int
    max_connections_per_ip: int
    metrics_listener: str
    metrics_allowed_hosts: tuple[str, ...]
    watchdog_timeout_ms: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int

    # Topics.
    num_partitions: int
    default_replication_factor: int
    auto_create_topics_enable: bool
    delete_topic_enable: bool

    # The log's regular work. What topics inherit is in `topic_defaults`.
    log_dir_failure_timeout_ms: int
    log_retention_check_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_initial_task_delay_ms: int
    log_cleaner_backoff_ms: int
    replica_high_watermark_checkpoint_interval_ms: int

    # Replication and leadership.
    replica_lag_time_max_ms: int
    replica_fetch_wait_max_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_backoff_ms: int
    replica_socket_timeout_ms: int
    replica_selector_class: str | None
    leader_replication_throttled_rate: int | None
    follower_replication_throttled_rate: int | None
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    unclean_leader_election_interval_ms: int

    # Groups and their offsets.
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_initial_rebalance_delay_ms: int
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_coordinator_max_groups_per_partition: int
    group_config_max_resources: int
    group_consumer_session_timeout_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_heartbeat_interval_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_assignment_interval_ms: int
    group_consumer_min_assignment_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    group_consumer_max_size: int
    group_consumer_max_regexes: int
    group_consumer_assignors: tuple[str, ...]
    group_consumer_migration_policy: str
    group_consumer_regex_refresh_interval_ms: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    offsets_topic_compression_codec: int

    # Producers and transactions.
    producer_id_expiration_ms: int
    producer_id_max_per_partition: int
    producer_id_expiration_check_interval_ms: int
    transactional_id_expiration_ms: int
    transaction_max_timeout_ms: int
    transaction_two_phase_commit_enable: bool
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_partition_verification_enable: bool
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_min_isr: int
    transaction_state_log_segment_bytes: int
    add_partitions_to_txn_retry_backoff_ms: int
    add_partitions_to_txn_retry_backoff_max_ms: int

    @classmethod
    def build(cls, properties: Properties, *, insecure: bool = False, hostname: str = "localhost") -> NodeConfig:
        """From checked properties, or ConfigError. A listener without a host is advertised as `hostname`."""
        layers = Layers(_with_both_ids(properties.texts()))
        values: Values = {name: layers.broker_value(name) for name in BROKER}
        for name in ("node.id", "broker.id"):  # either names the node; given both, they must agree
            values[name] = layers.broker_value(name) if layers.given(name) is not None else None
        node_id = values["broker.id"] if values["node.id"] is None else values["node.id"]
        if values["broker.id"] not in (None, node_id):
            raise ConfigError(
                "node.id and broker.id must be the same; keep only node.id", properties.where("broker.id")
            )
        values["node.id"] = node_id
        missing = [name for name, key in BROKER.items() if key.default is REQUIRED and values[name] is None]
        if missing:
            raise ConfigError(f'Missing required configuration "{missing[0]}" which has no default value.')
        if not isinstance(node_id, int) or node_id < 0:
            raise ConfigError("node.id must be 0 or more", properties.where("broker.id"))

        try:
            derived, warnings = _derive(values, layers, insecure=insecure, hostname=hostname)
            warnings += _check_together(values)
        except ConfigError as error:
            # The sentence begins with or contains the key at fault; its place helps more than none.
            named = [name for name in properties.entries if name in error.message]
            raise error.at(properties.where(max(named, key=len))) if named else error from None
        known: Values = {name: values[key] for name, key in _KEY_OF.items()} | derived
        known["warnings"] = (*properties.warnings, *warnings)
        return cls(**known)

    def with_dynamic(self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str] = EMPTY) -> NodeConfig:
        """This configuration with the cluster's dynamic defaults and this broker's dynamic values on top."""
        layers = Layers(self.layers.static, dict(dynamic_default), dict(dynamic_broker))
        changed: Values = {name: layers.broker_value(key) for name, key in _KEY_OF.items() if name not in _DERIVED}
        return replace(self, **changed, layers=layers, topic_defaults=TopicConfig.build(layers))

    def topic_config(self, overrides: Mapping[str, str] = EMPTY) -> TopicConfig:
        """The values that count for a topic with these overrides."""
        return TopicConfig.build(self.layers, overrides) if overrides else self.topic_defaults

    def may_act_as_broker(self, listener: str) -> bool:
        """Whether a client on that listener may act as a broker or a controller (SEC-T6). Clients have no principal while
        there is no authorizer, so the listener decides."""
        return listener in (
            self.inter_broker_listener,
            self.previous_inter_broker_listener,
            *self.controller_listener_names,
        )

    def is_for_brokers_alone(self, listener: str) -> bool:
        """Whether brokers use this listener among themselves, and clients have another one."""
        names = {each.name for each in self.listeners if not each.controller}
        return listener == self.inter_broker_listener and len(names) > 1

    def listener(self, name: str) -> ListenerConfig | None:
        return next((listener for listener in self.listeners if listener.name == name), None)


def _with_both_ids(texts: dict[str, str]) -> dict[str, str]:
    """`node.id` and `broker.id` name the same number: given one, both are, and both are described so."""
    given = {
        name: texts[name] for name in ("node.id", "broker.id") if not texts.get(name, "-").lstrip().startswith("-")
    }
    return dict.fromkeys(("node.id", "broker.id"), next(iter(given.values()))) | texts if given else texts


_DERIVED = {"node_id", "listeners", "controller_listener_names", "log_dirs", "metadata_log_dir"}
_KEY_OF = {f.name: f.name.replace("_", ".") for f in fields(NodeConfig) if f.name.replace("_", ".") in BROKER}


def _derive(values: Values, layers: Layers, *, insecure: bool, hostname: str) -> tuple[Values, list[str]]:
    """The attributes that several keys decide together, and warnings."""
    roles = values["process.roles"]
    broker, controller = "broker" in roles, "controller" in roles
    controller_names = tuple(name.upper() for name in values["controller.listener.names"])
    protocols = _protocols(values, layers, controller_names)
    listeners, warnings = build_listeners(
        values["listeners"],
        values["advertised.listeners"],
        protocols,
        controller_names,
        layers.given,
        hostname,
        insecure=insecure,
    )
    voters = parse_voters(values["controller.quorum.voters"])
    servers = parse_bootstrap_servers(values["controller.quorum.bootstrap.servers"])
    check_membership(values["node.id"], controller, voters, servers)
    log_dirs = values["log.dirs"] or values["log.dir"]
    inter_broker = _inter_broker_listener(values, layers, listeners, broker=broker)
    previous = _previous_listener(values, listeners, inter_broker, broker=broker)
    if broker:
        warnings += brokers_among_clients(listeners, inter_broker, previous)
    derived = {
        "broker": broker,
        "controller": controller,
        "listeners": tuple(listeners),
        "inter_broker_listener": inter_broker,
        "previous_inter_broker_listener": previous,
        "controller_listener_names": controller_names,
        "protocols": protocols,
        "quorum_voters": voters,
        "quorum_bootstrap_servers": servers,
        "log_dirs": log_dirs,
        "metadata_log_dir": values["metadata.log.dir"] or log_dirs[0],
        "topic_defaults": TopicConfig.build(layers),
        "layers": layers,
    }
    _check_roles(broker, controller, controller_names, listeners)
    return derived, warnings


def _protocols(values: Values, layers: Layers, controller_names: tuple[str, ...]) -> dict[str, str]:
    """The protocol of each listener name. A controller listener may be left out of the default map: it is PLAINTEXT then."""
    protocols = parse_protocol_map(values["listener.security.protocol.map"])
    if layers.given("listener.security.protocol.map") is None:
        for name in controller_names:
            protocols.setdefault(name, "PLAINTEXT")
    for name in controller_names:
        if name not in protocols:
            raise ConfigError(f"controller.listener.names: {name} has no protocol in listener.security.protocol.map")
    return protocols


def _inter_broker_listener(values: Values, layers: Layers, listeners: list[ListenerConfig], *, broker: bool) -> str:
    named, protocol = values["inter.broker.listener.name"], values["security.inter.broker.protocol"]
    if named is not None and layers.given("security.inter.broker.protocol") is not None:
        raise ConfigError("give inter.broker.listener.name or security.inter.broker.protocol, not both")
    name: str = (named or protocol).upper()
    if broker and name not in {listener.name for listener in listeners if not listener.controller}:
        raise ConfigError(f"inter.broker.listener.name must be one of the broker's listeners, and {name} is not")
    return name


def _previous_listener(
    values: Values, listeners: list[ListenerConfig], inter_broker: str, *, broker: bool
) -> str | None:
    if (named := values["previous.inter.broker.listener.name"]) is None:
        return None
    name: str = named.upper()
    if broker and name not in {listener.name for listener in listeners if not listener.controller} - {inter_broker}:
        raise ConfigError(
            f"previous.inter.broker.listener.name must be another of the broker's listeners than {inter_broker}, and {name} is not"
        )
    return name


def _check_roles(
    broker: bool, controller: bool, controller_names: tuple[str, ...], listeners: list[ListenerConfig]
) -> None:
    bound = {listener.name for listener in listeners}
    if controller and not bound.issuperset(controller_names):
        raise ConfigError("controller.listener.names must all appear in listeners when process.roles says controller")
    if not controller and bound.intersection(controller_names):
        raise ConfigError("controller.listener.names must not appear in listeners when process.roles says only broker")
    if not broker and not bound.issubset(controller_names):
        raise ConfigError("listeners must only hold controller.listener.names when process.roles says only controller")
    if broker and all(listener.controller for listener in listeners):
        raise ConfigError("listeners must hold one that is not in controller.listener.names, for clients")


def _check_together(values: Values) -> list[str]:
    """ConfigError for values that contradict each other, warnings for those that only work badly together."""
    for low, high in (
        ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
        ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
        ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
        ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
        ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
        ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
        ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
        ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    ):
        if values[low] > values[high]:
            raise ConfigError(f"{low} ({show(values[low])}) must not be greater than {high} ({show(values[high])})")
    if 0 < values["queued.max.request.bytes"] < values["socket.request.max.bytes"]:
        raise ConfigError("queued.max.request.bytes must not be less than socket.request.max.bytes")
    warnings = []
    if (metrics := parse_address(values["metrics.listener"])) is not None and not is_loopback(metrics[0]):
        warnings.append(
            f"metrics.listener: any client of {metrics[0]}:{metrics[1]} can read which topics there are; it has no authentication"
        )
    if values["broker.heartbeat.interval.ms"] * 2 > values["broker.session.timeout.ms"]:
        warnings.append(
            "broker.heartbeat.interval.ms should be at most half of broker.session.timeout.ms; a lost heartbeat fences it"
        )
    if values["transaction.two.phase.commit.enable"] and not values["unstable.api.versions.enable"]:
        warnings.append(
            "transaction.two.phase.commit.enable has no effect without unstable.api.versions.enable: no producer can ask for it"
        )
    return warnings
