"""The command line: Strandline's own commands, and Kafka's tools under their own names and flags.

A folder is a noun; a command is in the file of its name (`topics/topics.py`, `kafka_tools/kafka_topics.py`), and what a
command shares with Kafka's tool is beside it (`topics/topic_admin.py`). `main.py` has the table of all commands.

Always true: a command's module is imported only when that command runs or its own help is asked for, so that `--help` is
there at once; nothing but a command of this package writes to the terminal.
"""
