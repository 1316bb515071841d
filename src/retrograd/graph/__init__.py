"""`Graph` with its verbs, declared graphs, and what the explorer is shown of them."""
