"""Loop nests to LLVM: the module writer and what it is made of; below it, one folder a topic."""
