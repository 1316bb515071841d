"""Immediate mode: operations run when they are called, each by a program of its own.

Recording pays where a computation returns: its nodes, gradient and program are found again. Where
structures or sizes differ each time, or somebody looks after every few operations, recording would
learn for nothing. There an operation runs at once, by the program of its kind, and its result is a
leaf that knows its grad_fn: a `FunctionCall`. Gradients go back through calls one at a time, as
through segments; the bits are those of one program for all.
"""
