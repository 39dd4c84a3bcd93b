"""The client's operations: coroutines over the core that await nothing but the port in `io.py`.

Always true: no file here imports asyncio, sockets or a clock, so each operation exists once for both shells.
"""
