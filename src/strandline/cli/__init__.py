"""The command line: Strandline's own commands, and Kafka's tools under their own names and flags.

Always true: a command's module is imported only when that command runs or its own help is asked for, so that `--help` is
there at once; nothing but a command of this package writes to the terminal.
"""
