"""How each library makes the batches of a workload. README.md says what an adapter has."""
