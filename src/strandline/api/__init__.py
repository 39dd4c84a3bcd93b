"""Kafka's APIs, one file each: what is asked, what is answered, in which versions."""
