"""The client's logic without I/O: what to send, what a reply means, when to try again.

Always true: nothing here is `async`, reads a clock, draws a random number of its own or keeps a caller's buffer.
"""
