# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from strandline.cli.errors import CommandRefused
from strandline.cli.local import local_cluster, up
from strandline.cli.local.processes import identify
from strandline.config.node import NodeConfig
from strandline.config.properties import load


@pytest.fixture
def cluster(tmp_path):
    return replace(local_cluster.new(str(tmp_path), 19092, 3), config={"num.partitions": "4"})


@pytest.fixture
def separate(tmp_path):
    return local_cluster.new(str(tmp_path), 19092, 2, 3)


def test_nodes_have_their_own_ports_and_directories(cluster, tmp_path):
    assert [(node.node_id, node.port, node.controller_port) for node in cluster.nodes] == [
        (1, 19092, 20092),
        (2, 19093, 20093),
        (3, 19094, 20094),
    ]
    assert cluster.nodes[2].data_dir == str(tmp_path / "node-3" / "data")


def test_what_was_saved_is_found_again(cluster, tmp_path):
    cluster.processes = {1: identify(os.getpid())}
    cluster.save()
    assert local_cluster.find(str(tmp_path)) == cluster
    assert [node.node_id for node in cluster.running] == [1]


def test_the_properties_are_a_nodes_configuration(cluster):
    cluster.write_properties()
    node = cluster.nodes[1]
    config = NodeConfig.build(load(node.properties_path))
    assert (config.node_id, config.broker, config.controller) == (2, True, True)
    assert [listener.port for listener in config.listeners] == [19093, 22093, 20093]
    assert [config.may_act_as_broker(listener.name) for listener in config.listeners] == [False, True, True]
    assert config.warnings == ()
    assert config.log_dirs == (node.data_dir,)
    assert config.num_partitions == 4
    assert [voter.id for voter in config.quorum_voters] == [1, 2, 3]


def test_separate_controllers_have_ids_and_ports_of_their_own(separate):
    assert [(node.node_id, node.address, node.roles) for node in separate.nodes] == [
        (1, "127.0.0.1:19092", ["broker"]),
        (2, "127.0.0.1:19093", ["broker"]),
        (101, "127.0.0.1:20092", ["controller"]),
        (102, "127.0.0.1:20093", ["controller"]),
        (103, "127.0.0.1:20094", ["controller"]),
    ]
    assert [[node.node_id for node in group] for group in separate.stop_order] == [[1, 2], [101, 102, 103]]


def test_separate_roles_are_configurations_of_nodes(separate):
    separate.write_properties()
    broker, controller = (
        NodeConfig.build(load(separate.nodes[index].properties_path), hostname="here") for index in (0, 2)
    )
    assert (broker.broker, broker.controller) == (True, False)
    assert [listener.port for listener in broker.listeners] == [19092, 22092]
    assert (controller.broker, controller.controller) == (False, True)
    assert [listener.port for listener in controller.listeners] == [20092]
    assert [voter.id for voter in broker.quorum_voters] == [101, 102, 103]
    assert broker.quorum_voters == controller.quorum_voters


def test_a_cluster_written_down_before_there_were_controllers_is_found(cluster, tmp_path):
    cluster.save()
    path = tmp_path / "cluster.json"
    state = json.loads(path.read_text())
    del state["controllers_count"]
    path.write_text(json.dumps(state))
    assert local_cluster.find(str(tmp_path)) == cluster


def test_status_has_exactly_the_agreed_keys(cluster):
    keys = ["node_id", "pid", "address", "roles", "alive", "data_dir", "metrics", "broker_address"]
    assert list(cluster.nodes[0].status()) == keys
    assert cluster.nodes[0].status()["address"] == "127.0.0.1:19092"


def of_an_older_version(cluster, *node_ids):
    """These nodes run, and were started when brokers had no listener of their own: this very process is all of them."""
    for node in cluster.nodes:
        if node.node_id in node_ids:
            os.makedirs(node.directory, exist_ok=True)
            with open(node.properties_path, "w") as file:
                file.write(
                    "# Written by an older one\ninter.broker.listener.name=PLAINTEXT\nmetrics.listener=127.0.0.1:7\n"
                )
    cluster.processes = dict.fromkeys(node_ids, identify(os.getpid()))


@pytest.mark.parametrize("running", [(), (2,), (2, 3)])
def test_sec_t7_brokers_of_an_older_version_are_met_on_the_clients_listener_until_the_last_is_restarted(
    cluster, running
):
    of_an_older_version(cluster, *running)
    before = {node_id: cluster.nodes[node_id - 1].written() for node_id in running}
    cluster.write_properties()
    for node in cluster.nodes:
        if node.node_id in running:
            assert node.written() == before[node.node_id], "it says what the node was started with"
            assert (node.status()["broker_address"], node.status()["metrics"]) == (None, "127.0.0.1:7")
        else:
            config = NodeConfig.build(load(node.properties_path))
            assert config.inter_broker_listener == "BROKER"
            assert config.previous_inter_broker_listener == ("PLAINTEXT" if running else None)
            assert node.status()["broker_address"] == f"127.0.0.1:{22091 + node.node_id}"


@pytest.mark.parametrize(
    ("port", "config"),
    [(62534, {}), (19092, {"inter.broker.listener.name": "PLAINTEXT"}), (19092, {"listeners": "PLAINTEXT://:1"})],
)
def test_where_there_is_no_port_or_listeners_are_given_brokers_have_none_of_their_own(tmp_path, port, config):
    cluster = replace(local_cluster.new(str(tmp_path), port, 3), config=config)
    assert [node.broker_port for node in cluster.nodes] == [None] * 3
    cluster.write_properties()
    written = cluster.nodes[0].written()
    assert written["inter.broker.listener.name"] == "PLAINTEXT"
    assert "BROKER://" not in written["listeners"]


def test_the_ports_of_metrics_and_brokers_do_not_meet(tmp_path):
    cluster = local_cluster.new(str(tmp_path), 19092, 99, 99)
    ports = [port for node in cluster.nodes for port in (*node.ports, node.metrics_port)]
    assert len(set(ports)) == len(ports) == 99 * 5


def test_a_directory_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(CommandRefused, match="not empty and holds no cluster of `up`"):
        local_cluster.check_ours(str(tmp_path))


def test_clearing_leaves_what_is_not_ours(cluster, tmp_path):
    cluster.write_properties()
    cluster.save()
    (tmp_path / "notes.txt").write_text("")
    local_cluster.clear(str(tmp_path))
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_broken_description_is_refused(tmp_path):
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(CommandRefused, match="cannot be read as a cluster"):
        local_cluster.find(str(tmp_path))
    (tmp_path / "cluster.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(CommandRefused, match="another version"):
        local_cluster.find(str(tmp_path))


def test_one_up_at_a_time(tmp_path):
    with local_cluster.lock(str(tmp_path)), pytest.raises(CommandRefused, match="another `strandline up`"):
        local_cluster.lock(str(tmp_path))


def test_status_and_down_without_a_cluster(call, tmp_path):
    for command in ("status", "down"):
        ran = call(command, "--dir", str(tmp_path))
        assert ran.code == 1
        assert "there is no cluster in" in ran.err


def test_a_cluster_grows_only_by_brokers_under_separate_controllers(cluster, separate, call, tmp_path):
    cluster.save()
    for flags in (("--nodes", "4"), ("--nodes", "1"), ("--controllers", "3")):
        ran = call("up", "--dir", str(tmp_path), *flags)
        assert ran.code == 1
        assert f"the cluster in {tmp_path} has 3 nodes; start it without --nodes and --controllers" in ran.err
    for nodes, controllers in ((1, 3), (2, 1), (2, 0)):
        with pytest.raises(CommandRefused, match="has 2 nodes and 3 controllers"):
            up.resize(separate, nodes, controllers)
    up.resize(separate, 5, None)
    assert [node.node_id for node in separate.nodes] == [1, 2, 3, 4, 5, 101, 102, 103]


def test_status_of_a_cluster_that_is_down(separate, call, tmp_path):
    separate.save()
    rows = json.loads(call("status", "--dir", str(tmp_path), "--json").out)
    assert [(row["node_id"], row["alive"], row.get("controller")) for row in rows] == [
        (1, False, None),
        (2, False, None),
        (101, False, False),
        (102, False, False),
        (103, False, False),
    ]
