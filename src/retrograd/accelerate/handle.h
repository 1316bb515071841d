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
    PyObject *form, *page, *own, *array, *requires_grad, *grad, *root; /* NULL: not set */
    Links links; /* among the handles of a page; NULL: on none */
    PyObject *weak;
} Handle;

#endif
