"""Record batches as Arrow columns, and Arrow columns as record batches: many rows at a time, compiled where numba is there.

Always true: what is compiled and what is plain Python give the same rows, the same bytes and the same errors.
"""
