"""Rows of Spark to records of topics: the writers of `format("strandline")`, and what they do on driver and executor."""
