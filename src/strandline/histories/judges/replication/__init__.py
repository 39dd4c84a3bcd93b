"""Properties of replicated partitions, looked at after every turn of every broker and with every image."""
