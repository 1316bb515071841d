"""Kernels to a program: control flow, launch tables, and the LLVM module that holds them."""
