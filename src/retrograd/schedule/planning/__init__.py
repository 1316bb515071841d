"""Graph to kernel plan: what is built, placed in memory, and told of it."""
