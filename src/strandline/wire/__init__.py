"""Kafka's wire protocol: messages, and the bounded codec that reads and writes them.

Always true: nothing here does I/O or keeps a caller's buffer; whatever a peer may send ends in a message or in MalformedRequest.
"""
