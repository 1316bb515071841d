/* What `tensor.c` tells `immediate.c` of a call, in a capsule: "retrograd.accelerate._immediate.serve". */

#ifndef RETROGRAD_IMMEDIATE_H
#define RETROGRAD_IMMEDIATE_H

#include <Python.h>

#define COMPOSITE 3 /* in place of an arity: a function on tensors that is recorded as what it calls */

typedef struct {
    PyObject *key;         /* the function, or the operation */
    PyObject *python;      /* what serves all calls */
    PyObject *const *args; /* positional arguments, then named ones */
    Py_ssize_t positional, named;
    PyObject *names;
    int arity;   /* 2: an operation of two, of which the second may be a number */
    int numbers; /* whether the program takes that as it comes */
} ImmediateCall;

/* The result of a call where operations run at once; NULL without an exception: they do not. */
typedef PyObject *(*Immediate)(const ImmediateCall *call);

#endif
