"""`Tensor`: the class, and its protocols with Python, NumPy and other libraries."""
