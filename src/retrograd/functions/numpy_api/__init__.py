"""Functions under NumPy's names, with its arguments, that the array API standard does not have."""
