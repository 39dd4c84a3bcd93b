"""This node's part in the quorum: Raft's effects carried out, the metadata log and its snapshots, the images."""
