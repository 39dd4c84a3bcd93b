"""Kernels: the loops over every record, written in the part of Python that numba compiles to machine code.

Kernels get addresses and numbers and answer with a number. `primitives`, `reading` and `writing` import numba and are imported
only to be compiled; `machine_code` does that and keeps the result, `calls` lists what there is to call.

Always true: a kernel touches only memory that its caller gave it the bounds of, and it never raises.
"""
