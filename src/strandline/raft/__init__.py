"""The Raft of the metadata quorum (KIP-595, 853, 996): events in, effects out, no I/O."""
