/* The fields of a handle, the object behind a tensor. The class is in `tensor.c`; `fast_call.c` makes
   handles that have an array and nothing else, and takes arrays out of handles. */

#ifndef RETROGRAD_HANDLE_H
#define RETROGRAD_HANDLE_H

#include <Python.h>

typedef struct Links {
    struct Links *previous, *next;
} Links;

typedef struct {
    PyObject_HEAD
    PyObject *state; /* what it stands for: TraceNode, Node, array or Donated, see `LazyTensor` */
    PyObject *buffer, *array, *requires_grad, *grad; /* NULL: not set */
    Links links; /* among the handles of a buffer; NULL: in none */
    long long epoch; /* that of its making, see `EPOCH` in fast_path.py */
    PyObject *weak;
} Handle;

/* Where `tensor.c` has the number of the current epoch: in this capsule. */
#define EPOCH_CAPSULE "retrograd.accelerate._tensor.epoch"

#endif
