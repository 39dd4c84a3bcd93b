"""Record batches, Kafka's message format v2: what producers send, logs keep and consumers read.

Always true: nothing here does I/O, and a batch is bytes; only what must look inside decodes a record.
"""
