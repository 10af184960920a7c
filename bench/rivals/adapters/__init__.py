"""An adapter for each library, which makes the batches of a workload. README.md says what they have."""
