# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import socket
import struct
import threading

from strandline.cli.local import probe
from strandline.errors import ErrorCode
from strandline.wire import messages
from strandline.wire.headers import read_request_header, response_header


def test_the_answer_of_a_broker():
    response = messages.response(3)
    reply = response(
        brokers=[response.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=9092, rack="r")],
        cluster_id="id",
        controller_id=1,
    )
    answer = probe._read_metadata(messages.encode_response(3, probe.METADATA_VERSION, reply))
    assert answer.cluster_id == "id"
    assert answer.brokers == {1: "127.0.0.1:9092"}


def test_no_listener_is_no_answer():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert probe.ask(*bound.getsockname()) is None


def test_a_listener_that_is_no_broker_is_no_answer():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert probe.ask(*server.getsockname()) is None
        thread.join()


def test_the_question_whether_a_controller_leads_is_a_describe_quorum_request():
    asked, reply = ask_who_leads(leading=True)
    assert reply is True
    header = read_request_header(asked)
    assert (header.api_key, header.api_version) == (probe.DESCRIBE_QUORUM, 0)
    request = messages.decode_request(probe.DESCRIBE_QUORUM, 0, asked, header.body_position)
    ((topic, partitions),) = [(topic.topic_name, topic.partitions) for topic in request.topics]
    assert (topic, [partition.partition_index for partition in partitions]) == ("__cluster_metadata", [0])
    assert ask_who_leads(leading=False)[1] is False


def ask_who_leads(*, leading: bool) -> tuple[bytes, bool]:
    """The frame that was asked of a controller which leads or not, and what became of its answer."""
    R = messages.response(probe.DESCRIBE_QUORUM)
    code = ErrorCode.NONE if leading else ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition = R.PartitionData(partition_index=0, error_code=code, leader_id=101, leader_epoch=2)
    reply = R(topics=[R.TopicData(topic_name="__cluster_metadata", partitions=[partition])])
    body = response_header(probe.DESCRIBE_QUORUM, 0, 1) + messages.encode_response(probe.DESCRIBE_QUORUM, 0, reply)
    frames: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                frames.append(connection.recv(1000)[4:])
                connection.sendall(struct.pack(">i", len(body)) + body)

        thread = threading.Thread(target=answer)
        thread.start()
        leads = probe.leads(*server.getsockname())
        thread.join()
    return frames[0], leads
