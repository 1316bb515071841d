"""Graph to loop nests: fusion, index maps, memory. `Plan(graph)` holds the kernels; emitters
print their nests. Nothing here knows of the language they are printed in.
"""
