"""The workloads: data, initial weights, and a training step for each peer."""
