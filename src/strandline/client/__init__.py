"""Strandline's own Kafka client, for Strandline and Apache Kafka alike.

    core/      what the protocol asks of a client: synchronous, no I/O, time and chance are arguments
    flow/      operations over several requests, written once as coroutines against a small port (`flow/io.py`)
    aio.py     the port on asyncio's event loop, real or simulated
    blocking.py    the port on sockets and a selector, for callers that have no event loop
    bulk.py, bulk_producer.py    whole batches in and out, for such callers that decode and encode by themselves

Always true: the two shells differ only in how bytes travel and how time passes.
"""
