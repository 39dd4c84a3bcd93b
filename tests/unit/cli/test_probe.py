from __future__ import annotations

import socket
import threading

from strandline.cli import probe
from strandline.wire import messages


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


def test_nobody_there_is_no_answer():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert probe.ask(*bound.getsockname()) is None


def test_somebody_else_there_is_no_answer():
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
