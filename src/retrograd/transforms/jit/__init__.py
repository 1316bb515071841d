"""`jit`: one program for each signature."""
