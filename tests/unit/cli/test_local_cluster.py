from __future__ import annotations

import json
import os

import pytest

from strandline.cli import local_cluster
from strandline.cli.errors import Refused
from strandline.cli.processes import identify
from strandline.config.node import NodeConfig
from strandline.config.properties import load


@pytest.fixture
def cluster(tmp_path):
    return local_cluster.new(str(tmp_path), 19092, 3, {"num.partitions": "4"})


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
    assert [listener.port for listener in config.listeners] == [19093, 20093]
    assert config.log_dirs == (node.data_dir,)
    assert config.num_partitions == 4
    assert (config.default_replication_factor, config.topic_defaults.min_insync_replicas) == (3, 2)


def test_status_has_exactly_the_agreed_keys(cluster):
    keys = ["node_id", "pid", "address", "roles", "alive", "data_dir"]
    assert list(cluster.nodes[0].status()) == keys
    assert cluster.nodes[0].status()["address"] == "127.0.0.1:19092"


def test_a_directory_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(Refused, match="not empty and holds no cluster of ours"):
        local_cluster.check_ours(str(tmp_path))


def test_clearing_leaves_what_is_not_ours(cluster, tmp_path):
    cluster.write_properties()
    cluster.save()
    (tmp_path / "notes.txt").write_text("")
    local_cluster.clear(str(tmp_path))
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_broken_record_is_told(tmp_path):
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(Refused, match="cannot be read as a cluster"):
        local_cluster.find(str(tmp_path))
    (tmp_path / "cluster.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(Refused, match="another version"):
        local_cluster.find(str(tmp_path))


def test_one_up_at_a_time(tmp_path):
    with local_cluster.lock(str(tmp_path)), pytest.raises(Refused, match="another `strandline up`"):
        local_cluster.lock(str(tmp_path))


def test_status_and_down_without_a_cluster(call, tmp_path):
    for command in ("status", "down"):
        ran = call(command, "--dir", str(tmp_path))
        assert ran.code == 1
        assert "there is no cluster in" in ran.err


def test_several_nodes_are_refused_with_a_reason(call, tmp_path):
    ran = call("up", "--nodes", "3", "--dir", str(tmp_path / "new"))
    assert ran.code == 1
    assert "only one node can be started until the quorum is there" in ran.err
