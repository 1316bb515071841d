"""How results are computed on NumPy arrays: orders of summation, precision, exact bits."""
