"""Log files as lines of text, exactly as Apache Kafka's DumpLogSegments prints them."""
