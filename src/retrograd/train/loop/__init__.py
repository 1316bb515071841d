"""`fit`, and what it consists of."""
