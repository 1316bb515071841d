"""Functions of the user's called on stand-ins: their arguments, and the subgraphs they become."""
