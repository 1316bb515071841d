"""What users write in: tensors, functions on them, transforms, graphs, random numbers.

The public names are those of the package itself; nothing is exported here.
"""
