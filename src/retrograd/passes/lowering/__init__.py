"""Operations rewritten into those that are compiled: complex numbers, products, windows."""
