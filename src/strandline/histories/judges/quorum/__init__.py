"""Properties of the quorum (KRaft), looked at after every turn of every node."""
