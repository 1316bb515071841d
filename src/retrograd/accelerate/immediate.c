/* Operations that run when they are called, and their gradients: from tensors to tensors.

   `eager/immediate/` decides what runs at once, and makes the programs. What it has found for a call
   is kept here as a `Kernel`, by the function, its options and what is known of its tensors; the next
   call like it is served without Python. A kernel with names for sizes serves all sizes that follow
   its pattern. For all else, errors included, the function in Python is called, which starts from the
   beginning: until a result is certain, nothing is changed.

   Programs here are brief: they run under the interpreter's lock, so a frame is used by one call at
   a time. Memory is allocated before a frame is filled in, as that may run any code. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include "handle.h"
#include "immediate.h"

#define TYPE(object) Py_TYPE((PyObject *)(object))
#define WORDS 96    /* of a key; calls with more are left to Python */
#define OPERANDS 60 /* the same of tensors; a mask of operands is a number */
#define OUTPUTS 16
#define NAMES 16
#define ANY (-((int64_t)1 << 62)) /* in a pattern: a size that is made of others */
#define CELLS 128            /* inputs of a program */
#define SPARE_BYTES (1 << 20) /* memory that is kept for the next call */
#define READABLE (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)
#define LARGEST 9007199254740992LL /* 2**53, as in quick_dispatch.py */

typedef int64_t (*Program)(void *frame, int64_t thread, int64_t threads, void *pool);
typedef int64_t (*Launch)(void *team, void *program, void *frame, int64_t threads, void *pace,
                          int64_t *subnormal);
static Launch launch; /* of the team, see runtime/thread_pool.py; NULL: nobody has named one */

/* What `install` is told. */
static const long long *epoch; /* which handles are marked with */
static PyTypeObject *handle_class, *graph_node_class, *leaf_class, *output_class, *call_class;
static PyTypeObject *constant_class;
static PyTypeObject *moved_class, *dtype_class, *call_base;
static PyObject *current, *modes, *listeners, *nowhere, *next_number, *places, *llvm;
static PyObject *begin_run, *count_threads;
static void *team;
static PyObject *name_run, *name_prim, *name_array, *name_shared, *name_freed, *name_listeners;
static PyObject *name_back, *name_code, *name_lasti, *name_file;
static PyObject *strings;   /* of keys, each once */
static Py_ssize_t capacity; /* keys that are remembered */
static Py_ssize_t long_run; /* calls after which a run is recorded */

/* Have a place hold another object, which it takes; what was there goes last, as that may run code. */
#define REPLACE(place, object)                       \
    do {                                             \
        PyObject **at = (PyObject **)&(place);       \
        PyObject *gone = *at;                        \
        *at = (PyObject *)(object);                  \
        Py_XDECREF(gone);                            \
    } while (0)

/* A member that is an object. */
#define MEMBER(type, field) {#field, T_OBJECT, offsetof(type, field), 0, NULL}

static void *fresh(PyTypeObject *type)
{
    return PyType_GenericAlloc(type, 0);
}

/* -- what a call leaves -------------------------------------------------------------------------- */

/* Operations that run at once, from the first to the gradient or look that ends them. */
typedef struct {
    PyObject_HEAD
    PyObject *site, *offered; /* what Python has found for the call it was asked about */
    PyObject *made, *weak;    /* weak references to calls, see `enlist`; to this */
    Py_ssize_t calls, work, looked, prune;
    uint64_t what; /* a hash of the calls, and of which are computed from which */
} Run;

typedef struct {
    PyObject_HEAD
    /* The kernel; Output, Node or None for each operand; the arrays of operands, outputs and what
       is kept for the gradient; whole numbers and numbers that were given. */
    PyObject *kernel, *edges, *given, *ints, *numbers;
    PyObject *scope, *code, *nodes, *run, *weak;
    long long number, walk;
    Py_ssize_t place, position; /* among the calls of a walk, and of the run */
    int lasti;
    char freed;
} Call;

typedef struct {
    PyObject_HEAD
    PyObject *array, *call, *_leaf;
    PyObject *where; /* scope and line, of one that has no call */
    int index;
    char freed;
} Output;

static void mix(Run *run, uint64_t x)
{
    uint64_t h = (run->what ^ x) * 0x9E3779B97F4A7C15u;
    run->what = h ^ (h >> 29);
}

static PyObject *run_mix(Run *self, PyObject *x)
{
    uint64_t word = PyLong_AsUnsignedLongLongMask(x);
    if (word == (uint64_t)-1 && PyErr_Occurred())
        return NULL;
    mix(self, word);
    Py_RETURN_NONE;
}

static int run_init(Run *self, PyObject *args, PyObject *keywords)
{
    PyObject *site;
    if (!PyArg_ParseTuple(args, "O", &site))
        return -1;
    Py_INCREF(site);
    REPLACE(self->site, site);
    REPLACE(self->made, PyList_New(0));
    self->prune = 64;
    return self->made != NULL ? 0 : -1;
}

/* The calls that are still there. */
static PyObject *run_alive(Run *self, PyObject *unused)
{
    PyObject *found = PyList_New(0);
    for (Py_ssize_t k = 0; found != NULL && k < PyList_Size(self->made); k++) {
        PyObject *call = PyWeakref_GetObject(PyList_GetItem(self->made, k));
        if (call != Py_None && PyList_Append(found, call) < 0)
            Py_CLEAR(found);
    }
    return found;
}

/* List a call for who makes nodes of all that was computed. A run lives as long as one of these. */
static int enlist(Run *run, Call *call)
{
    PyObject *ref = PyWeakref_NewRef((PyObject *)call, NULL), *kept;
    if (ref != NULL && PyList_Size(run->made) >= run->prune) {
        kept = PyList_New(0); /* from here on no code of others runs that might list a call */
        for (Py_ssize_t k = 0; kept != NULL && k < PyList_Size(run->made); k++) {
            PyObject *one = PyList_GetItem(run->made, k);
            if (PyWeakref_GetObject(one) != Py_None && PyList_Append(kept, one) < 0)
                Py_CLEAR(kept);
        }
        if (kept == NULL) {
            Py_DECREF(ref);
            return -1;
        }
        run->prune = 2 * PyList_Size(kept) + 64;
        REPLACE(run->made, kept);
    }
    if (ref == NULL || PyList_Append(run->made, ref) < 0) {
        Py_XDECREF(ref);
        return -1;
    }
    Py_DECREF(ref);
    Py_INCREF((PyObject *)run);
    REPLACE(call->run, (PyObject *)run);
    call->position = run->calls;
    return 0;
}

static PyObject *run_enlist(Run *self, PyObject *call)
{
    if (!PyObject_TypeCheck(call, call_base)) {
        PyErr_SetString(PyExc_TypeError, "a call is needed");
        return NULL;
    }
    if (enlist(self, (Call *)call) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *run_forget(Run *self, PyObject *unused)
{
    PyObject *empty = PyList_New(0);
    if (empty == NULL)
        return NULL;
    REPLACE(self->made, empty);
    Py_RETURN_NONE;
}

static int run_traverse(Run *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->site);
    Py_VISIT(self->offered);
    Py_VISIT(self->made);
    return 0;
}

static int run_clear(Run *self)
{
    Py_CLEAR(self->site);
    Py_CLEAR(self->offered);
    Py_CLEAR(self->made);
    return 0;
}

static int call_traverse(Call *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->kernel);
    Py_VISIT(self->edges);
    Py_VISIT(self->given);
    Py_VISIT(self->nodes);
    Py_VISIT(self->run);
    return 0;
}

static int call_clear(Call *self)
{
    Py_CLEAR(self->kernel);
    Py_CLEAR(self->edges);
    Py_CLEAR(self->given);
    Py_CLEAR(self->ints);
    Py_CLEAR(self->numbers);
    Py_CLEAR(self->scope);
    Py_CLEAR(self->code);
    Py_CLEAR(self->nodes);
    Py_CLEAR(self->run);
    return 0;
}

static int output_traverse(Output *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->array);
    Py_VISIT(self->call);
    Py_VISIT(self->_leaf);
    return 0;
}

static int output_clear(Output *self)
{
    Py_CLEAR(self->array);
    Py_CLEAR(self->call);
    Py_CLEAR(self->_leaf);
    Py_CLEAR(self->where);
    return 0;
}

/* Classes of Python's have a trashcan around these, so freeing a long chain does not recurse. */
#define DEALLOC(name, type, before)                                        \
    static void name##_dealloc(type *self)                                 \
    {                                                                      \
        PyTypeObject *own = TYPE(self);                                    \
        freefunc release = (freefunc)PyType_GetSlot(own, Py_tp_free);      \
        PyObject_GC_UnTrack((PyObject *)self);                             \
        before;                                                            \
        name##_clear(self);                                                \
        release(self);                                                     \
        Py_DECREF((PyObject *)own);                                        \
    }
#define WEAK if (self->weak != NULL) PyObject_ClearWeakRefs((PyObject *)self)
DEALLOC(run, Run, WEAK)
DEALLOC(call, Call, WEAK)
DEALLOC(output, Output, )

static PyMemberDef run_members[] = {
    MEMBER(Run, site),
    MEMBER(Run, offered),
    {"calls", T_PYSSIZET, offsetof(Run, calls), 0, NULL},
    {"work", T_PYSSIZET, offsetof(Run, work), 0, NULL},
    {"looked", T_PYSSIZET, offsetof(Run, looked), 0, NULL},
    {"what", T_ULONGLONG, offsetof(Run, what), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Run, weak), READONLY, NULL},
    {NULL},
};

static PyMethodDef run_methods[] = {
    {"mix", (PyCFunction)run_mix, METH_O, "Have a number be part of what tells runs apart."},
    {"alive", (PyCFunction)run_alive, METH_NOARGS, "The calls that somebody holds, in order."},
    {"enlist", (PyCFunction)run_enlist, METH_O, "List a call that was made."},
    {"forget", (PyCFunction)run_forget, METH_NOARGS, "List none of those made so far."},
    {NULL},
};

static PyMemberDef call_members[] = {
    MEMBER(Call, kernel),
    MEMBER(Call, edges),
    MEMBER(Call, given),
    MEMBER(Call, ints),
    MEMBER(Call, numbers),
    MEMBER(Call, scope),
    MEMBER(Call, code),
    MEMBER(Call, nodes),
    MEMBER(Call, run),
    {"number", T_LONGLONG, offsetof(Call, number), 0, NULL},
    {"position", T_PYSSIZET, offsetof(Call, position), 0, NULL},
    {"lasti", T_INT, offsetof(Call, lasti), 0, NULL},
    {"freed", T_BOOL, offsetof(Call, freed), 0, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Call, weak), READONLY, NULL},
    {NULL},
};

static PyMemberDef output_members[] = {
    MEMBER(Output, array),
    MEMBER(Output, call),
    MEMBER(Output, _leaf),
    MEMBER(Output, where),
    {"index", T_INT, offsetof(Output, index), 0, NULL},
    {"freed", T_BOOL, offsetof(Output, freed), 0, NULL},
    {NULL},
};

#define GC_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC)

static PyType_Slot run_slots[] = {
    {Py_tp_doc, "Operations that run at once: of a TraceSite."},
    {Py_tp_init, run_init},       {Py_tp_traverse, run_traverse}, {Py_tp_clear, run_clear},
    {Py_tp_dealloc, run_dealloc}, {Py_tp_members, run_members},   {Py_tp_methods, run_methods},
    {0, NULL},
};
static PyType_Spec run_spec = {
    "retrograd.accelerate._immediate.Run", sizeof(Run), 0, GC_FLAGS, run_slots,
};

static PyType_Slot call_slots[] = {
    {Py_tp_doc, "The fields of a call that has run."},
    {Py_tp_traverse, call_traverse}, {Py_tp_clear, call_clear},
    {Py_tp_dealloc, call_dealloc},   {Py_tp_members, call_members},
    {0, NULL},
};
static PyType_Spec call_spec = {
    "retrograd.accelerate._immediate.CallBase", sizeof(Call), 0, GC_FLAGS | Py_TPFLAGS_BASETYPE,
    call_slots,
};

static PyType_Slot output_slots[] = {
    {Py_tp_doc, "The fields of a result of a call."},
    {Py_tp_traverse, output_traverse}, {Py_tp_clear, output_clear},
    {Py_tp_dealloc, output_dealloc},   {Py_tp_members, output_members},
    {0, NULL},
};
static PyType_Spec output_spec = {
    "retrograd.accelerate._immediate.OutputBase", sizeof(Output), 0, GC_FLAGS | Py_TPFLAGS_BASETYPE,
    output_slots,
};

#include "brief_program.h"

/* -- kernels ------------------------------------------------------------------------------------- */

/* A way back: from which outputs, to which operands, to which of these there is a gradient already. */
typedef struct Back {
    struct Back *next;
    int64_t from, to, more;
    Brief *brief; /* NULL: all is passed on */
    Py_ssize_t passed, computed;
    int64_t *pass, *compute; /* operand and position in turn; operands */
} Back;

typedef struct {
    PyObject_HEAD
    PyObject *kind; /* what Python knows of it */
    Brief *plain, *tracked;
    Back *back;
    /* The sizes of operands, one behind the other: those that are known, -1 - k for name k, and ANY. */
    int64_t *pattern;
    Py_ssize_t sizes, names, operands, outputs;
    /* Outputs, and what is inside and became an operand of a gradient that is a call, behind. */
    Py_ssize_t results;
    int64_t *reach; /* for each result, the operands that a gradient goes to */
    Size *inner;    /* sizes that may not be 0 or 1 */
    Py_ssize_t inners;
    int64_t floating;  /* which outputs are, as a mask */
    PyObject *make;    /* what a call returns, of a tuple of results; NULL: the one result */
    int64_t *order;    /* the output that each result is; NULL: the result is for Python */
    Py_ssize_t items;  /* how many results */
    double weight;     /* time for an element of the first operand, in nodes */
} Kernel;

static int kernel_init(Kernel *self, PyObject *args, PyObject *keywords)
{
    PyObject *kind, *pattern, *reach, *inner, *make, *order;
    long long floating;
    if (self->kind != NULL
        || !PyArg_ParseTuple(args, "OOnnOOLOOd", &kind, &pattern, &self->names, &self->operands,
                             &reach, &inner, &floating, &make, &order, &self->weight))
        return -1;
    if (self->names > NAMES) {
        PyErr_SetString(PyExc_ValueError, "too many names");
        return -1;
    }
    Py_INCREF(kind);
    self->kind = kind;
    self->floating = floating;
    if (make != Py_None) {
        Py_INCREF(make);
        self->make = make;
    }
    if (order != Py_None && (self->order = numbers_of(order, &self->items)) == NULL)
        return -1;
    self->pattern = numbers_of(pattern, &self->sizes);
    self->reach = self->pattern != NULL ? numbers_of(reach, &self->outputs) : NULL;
    self->results = self->outputs;
    self->inner = self->reach != NULL ? sizes_of(inner, &self->inners) : NULL;
    return self->inner != NULL ? 0 : -1;
}

static int kernel_traverse(Kernel *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->kind);
    Py_VISIT(self->make);
    return 0;
}

static int kernel_clear(Kernel *self)
{
    Py_CLEAR(self->kind);
    Py_CLEAR(self->make);
    return 0;
}

static void kernel_dealloc(Kernel *self)
{
    PyTypeObject *own = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(own, Py_tp_free);
    PyObject_GC_UnTrack((PyObject *)self);
    kernel_clear(self);
    Py_XDECREF((PyObject *)self->plain);
    Py_XDECREF((PyObject *)self->tracked);
    while (self->back != NULL) {
        Back *gone = self->back;
        self->back = gone->next;
        Py_XDECREF((PyObject *)gone->brief);
        PyMem_Free(gone->pass);
        PyMem_Free(gone->compute);
        PyMem_Free(gone);
    }
    PyMem_Free(self->pattern);
    PyMem_Free(self->reach);
    PyMem_Free(self->order);
    free_sizes(self->inner, self->inners);
    release(self);
    Py_DECREF((PyObject *)own);
}

static PyObject *kernel_forward(Kernel *self, PyObject *args)
{
    PyObject *brief;
    int tracked;
    if (!PyArg_ParseTuple(args, "pO!", &tracked, brief_type, &brief))
        return NULL;
    Py_INCREF(brief);
    REPLACE(*(tracked ? &self->tracked : &self->plain), (Brief *)brief);
    Py_RETURN_NONE;
}

static PyObject *kernel_backward(Kernel *self, PyObject *args)
{
    long long from, to, more;
    PyObject *brief, *pass, *compute;
    Back *new;
    if (!PyArg_ParseTuple(args, "LLLOOO", &from, &to, &more, &brief, &pass, &compute))
        return NULL;
    if (brief != Py_None && TYPE(brief) != brief_type) {
        PyErr_SetString(PyExc_TypeError, "a BriefProgram is needed");
        return NULL;
    }
    new = PyMem_Calloc(1, sizeof *new);
    if (new == NULL)
        return PyErr_NoMemory();
    new->from = from;
    new->to = to;
    new->more = more;
    new->pass = numbers_of(pass, &new->passed);
    new->compute = new->pass != NULL ? numbers_of(compute, &new->computed) : NULL;
    if (new->compute == NULL) {
        PyMem_Free(new->pass);
        PyMem_Free(new);
        return NULL;
    }
    new->passed /= 2;
    if (brief != Py_None) {
        Py_INCREF(brief);
        new->brief = (Brief *)brief;
    }
    new->next = self->back;
    self->back = new;
    Py_RETURN_NONE;
}

/* What the names stand for in sizes; 0: these do not follow the pattern. */
static int names_in(const Kernel *kernel, const int64_t *sizes, Py_ssize_t count, int64_t *names)
{
    if (count != kernel->sizes)
        return 0;
    memset(names, 0, (size_t)kernel->names * sizeof *names);
    for (Py_ssize_t k = 0; k < count; k++) {
        int64_t entry = kernel->pattern[k], n = sizes[k];
        int64_t *name;
        if (entry == ANY)
            continue;
        name = &names[entry < 0 ? -1 - entry : 0];
        if (entry >= 0) {
            if (entry != n)
                return 0;
        }
        else if (*name == 0) {
            if (n < 2)
                return 0;
            *name = n;
        }
        else if (*name != n)
            return 0;
    }
    for (Py_ssize_t k = 0; k < kernel->inners; k++)
        if (size_at(kernel->inner[k], names) < 2)
            return 0;
    return 1;
}

/* There are more results behind the outputs: the operands that a gradient goes to from each. */
static PyObject *kernel_extend(Kernel *self, PyObject *reach)
{
    Py_ssize_t outputs = self->outputs, more;
    int64_t *found = numbers_of(reach, &more), *all = NULL;
    if (found != NULL)
        all = PyMem_Malloc((size_t)(outputs + more + 1) * sizeof *all);
    if (all == NULL) {
        PyMem_Free(found);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    memcpy(all, self->reach, (size_t)outputs * sizeof *all);
    memcpy(all + outputs, found, (size_t)more * sizeof *all);
    PyMem_Free(found);
    PyMem_Free(self->reach);
    self->reach = all;
    self->results = outputs + more;
    Py_RETURN_NONE;
}

static PyMethodDef kernel_methods[] = {
    {"extend", (PyCFunction)kernel_extend, METH_O,
     "There are more results: the operands that a gradient goes to from each behind the outputs."},
    {"forward", (PyCFunction)kernel_forward, METH_VARARGS,
     "Run this for the results, and with the first argument for what a gradient needs."},
    {"backward", (PyCFunction)kernel_backward, METH_VARARGS,
     "From results, to operands, with gradients so far (as masks): the program, what is passed on, "
     "and which operands the program computes the gradients of."},
    {NULL},
};

static PyMemberDef kernel_members[] = {MEMBER(Kernel, kind), {NULL}};

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, "The programs of a kind of calls."},
    {Py_tp_init, kernel_init},       {Py_tp_traverse, kernel_traverse},
    {Py_tp_clear, kernel_clear},     {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_members, kernel_members}, {Py_tp_methods, kernel_methods},
    {0, NULL},
};
static PyType_Spec kernel_spec = {
    "retrograd.accelerate._immediate.CallKernel", sizeof(Kernel), 0, GC_FLAGS, kernel_slots,
};
static PyTypeObject *kernel_type;

/* -- keys ---------------------------------------------------------------------------------------- */

enum { OPERAND = 1, OPTION, WHOLE, SIZED, FLOAT, FREE, ITEMS, RANGE, NAMED };

/* A call, taken apart. */
typedef struct {
    uint64_t words[WORDS];
    int64_t sizes[WORDS]; /* of operands, then whole numbers that may be sizes */
    int64_t ints[WORDS];
    PyObject *objects[WORDS]; /* whose addresses are among the words, borrowed */
    PyObject *arrays[OPERANDS], *edges[OPERANDS];
    Handle *operands[OPERANDS];
    PyObject *number; /* that the program takes as it comes, or NULL */
    int count, shapes, whole, held, operand, tracked, freed;
} Parts;

static int push(Parts *p, uint64_t word)
{
    if (p->count >= WORDS)
        return 0;
    p->words[p->count++] = word;
    return 1;
}

static int push_object(Parts *p, int tag, PyObject *object)
{
    if (p->held >= WORDS || !push(p, (uint64_t)tag) || !push(p, (uint64_t)(uintptr_t)object))
        return 0;
    p->objects[p->held++] = object;
    return 1;
}

static int push_size(Parts *p, int64_t n)
{
    if (p->shapes + p->whole >= WORDS)
        return 0;
    p->sizes[p->shapes++] = n;
    return 1;
}

/* Whether an attribute of an object is True, -1: it failed. */
static int flag(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(object, name);
    int yes = found == NULL ? -1 : found == Py_True;
    Py_XDECREF(found);
    return yes;
}

/* The array of a leaf, or of a constant that keeps it, borrowed, and what a gradient goes to; NULL:
   that is for Python. */
static PyObject *array_of_leaf(Handle *h, int *freed, PyObject **edge)
{
    PyObject *prim = PyObject_GetAttr(h->state, name_prim), *array = NULL;
    if (prim != NULL && TYPE(prim) == constant_class && h->requires_grad != Py_True) {
        array = PyObject_GetAttr(prim, name_array);
        Py_DECREF(prim);
        Py_XDECREF(array);
        return array;
    }
    if (prim == NULL || TYPE(prim) != leaf_class || flag(prim, name_shared) != 0) {
        Py_XDECREF(prim);
        return NULL;
    }
    *freed = flag(prim, name_freed);
    array = *freed >= 0 ? PyObject_GetAttr(prim, name_array) : NULL;
    Py_DECREF(prim); /* the state holds it, and it the array */
    Py_XDECREF(array);
    *edge = h->state;
    return array;
}

/* A tensor as an operand: the same one is one operand. */
static int push_operand(Parts *p, Handle *h)
{
    PyObject *state = h->state, *array = NULL, *edge = NULL;
    int freed = 0, wants = h->requires_grad == Py_True;
    for (int k = 0; k < p->operand; k++)
        if (p->operands[k]->state == state)
            return push(p, OPERAND) && push(p, (uint64_t)k);
    if (state == NULL || p->operand >= OPERANDS || (h->buffer != NULL && h->buffer != nowhere))
        return 0;
    if (PyArray_CheckExact(state))
        array = state;
    else if (TYPE(state) == output_class) {
        array = ((Output *)state)->array;
        freed = ((Output *)state)->freed;
        edge = state;
    }
    else if (TYPE(state) == graph_node_class)
        array = array_of_leaf(h, &freed, &edge);
    if (array == NULL || freed < 0 || !PyArray_CheckExact(array)
        || (PyArray_FLAGS((PyArrayObject *)array) & READABLE) != READABLE
        || PyArray_SIZE((PyArrayObject *)array) == 0)
        return 0;
    p->arrays[p->operand] = array;
    p->edges[p->operand] = wants || freed ? edge : NULL;
    p->operands[p->operand++] = h;
    p->tracked |= wants;
    p->freed |= freed;
    for (int k = 0; k < PyArray_NDIM((PyArrayObject *)array); k++)
        if (!push_size(p, (int64_t)PyArray_DIMS((PyArrayObject *)array)[k]))
            return 0;
    return push(p, (uint64_t)PyArray_NDIM((PyArrayObject *)array))
           && push_object(p, OPERAND, (PyObject *)PyArray_DESCR((PyArrayObject *)array));
}

static int push_whole(Parts *p, PyObject *x)
{
    int overflow;
    long long n = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (overflow)
        return 0;
    if (n <= 1)
        return push(p, WHOLE) && push(p, (uint64_t)n);
    if (p->shapes + p->whole >= WORDS)
        return 0;
    p->ints[p->whole++] = n;
    return push(p, SIZED);
}

static int push_float(Parts *p, int tag, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return push(p, (uint64_t)tag) && push(p, bits);
}

static int push_string(Parts *p, PyObject *x, int tag)
{
    PyObject *known = PyDict_GetItemWithError(strings, x);
    if (known == NULL) {
        if (PyDict_SetItem(strings, x, x) < 0)
            return 0;
        known = x;
    }
    return push_object(p, tag, known);
}

/* An argument, or a part of one; 0: it is for Python. */
static int enter(Parts *p, PyObject *x)
{
    if (PyObject_TypeCheck(x, handle_class))
        return push_operand(p, (Handle *)x);
    if (x == Py_None || x == Py_Ellipsis || PyBool_Check(x) || TYPE(x) == dtype_class)
        return push_object(p, OPTION, x);
    if (PyLong_CheckExact(x))
        return push_whole(p, x);
    if (PyFloat_CheckExact(x))
        return push_float(p, FLOAT, PyFloat_AsDouble(x));
    if (PyUnicode_CheckExact(x))
        return push_string(p, x, OPTION);
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
        int list = PyList_CheckExact(x);
        Py_ssize_t n = list ? PyList_Size(x) : PyTuple_Size(x);
        if (!push(p, ITEMS) || !push(p, (uint64_t)(2 * n + list)))
            return 0;
        for (Py_ssize_t k = 0; k < n; k++)
            if (!enter(p, list ? PyList_GetItem(x, k) : PyTuple_GetItem(x, k)))
                return 0;
        return 1;
    }
    return 0;
}

static int is_literal(double x)
{
    double size = fabs(x);
    return size == 0.0 || size == 0.5 || size == 1.0 || size == 2.0 || x == 3.0 || isinf(x);
}

/* The number next to the tensor of an operation of two. */
static int enter_number(Parts *p, PyObject *x, int free)
{
    int overflow = 0, whole = PyLong_CheckExact(x);
    long long n = whole ? PyLong_AsLongLongAndOverflow(x, &overflow) : 0;
    double value = whole ? (double)n : PyFloat_AsDouble(x);
    PyArray_Descr *dtype = p->operand ? PyArray_DESCR((PyArrayObject *)p->arrays[0]) : NULL;
    if (overflow || dtype == NULL)
        return 0;
    if (free && dtype->kind == 'f' && !is_literal(value) && -LARGEST <= n && n <= LARGEST) {
        p->number = x;
        return push(p, FREE);
    }
    return whole ? push(p, WHOLE) && push(p, (uint64_t)n) : push_float(p, FLOAT, value);
}

/* Take a call apart; 0: it is for Python. */
static int take_apart(Parts *p, const ImmediateCall *call)
{
    p->count = p->shapes = p->whole = p->held = p->operand = p->tracked = p->freed = 0;
    p->number = NULL;
    if (!push_object(p, NAMED, call->key))
        return 0;
    for (Py_ssize_t k = 0; k < call->positional; k++) {
        PyObject *x = call->args[k];
        if (call->arity == 2 && k == 1 && (PyFloat_CheckExact(x) || PyLong_CheckExact(x))) {
            if (!enter_number(p, x, call->numbers))
                return 0;
        }
        else if (!enter(p, x))
            return 0;
    }
    for (Py_ssize_t k = 0; k < call->named; k++)
        if (!push_string(p, PyTuple_GetItem(call->names, k), NAMED)
            || !enter(p, call->args[call->positional + k]))
            return 0;
    if (p->operand + p->whole > OPERANDS)
        return 0;
    for (int k = 0; k < p->whole; k++) {
        p->sizes[p->shapes + k] = p->ints[k];
        p->arrays[p->operand + k] = NULL; /* to programs, a number is an operand without an array */
    }
    return p->operand > 0;
}

/* -- the table ----------------------------------------------------------------------------------- */

/* Kernels by keys: of one size each (`sized`), or of all that follow a pattern. */
typedef struct Entry {
    struct Entry *next;
    uint64_t hash;
    int words, sizes, sized;
    uint64_t *content; /* words, then sizes */
    Kernel *kernel;
    PyObject *objects;
} Entry;

#define BINS 4096
static Entry *bins[BINS];
static Py_ssize_t entries;

static uint64_t hash_of(const Parts *p, int sized)
{
    uint64_t h = (uint64_t)sized;
    for (int k = 0; k < p->count; k++)
        h = (h ^ p->words[k]) * 0x9E3779B97F4A7C15u, h ^= h >> 32;
    for (int k = 0; sized && k < p->shapes + p->whole; k++)
        h = (h ^ (uint64_t)p->sizes[k]) * 0x9E3779B97F4A7C15u, h ^= h >> 32;
    return h;
}

static int is_key(const Entry *entry, const Parts *p, uint64_t hash, int sized)
{
    int sizes = p->shapes + p->whole;
    return entry->hash == hash && entry->sized == sized && entry->words == p->count
           && memcmp(entry->content, p->words, (size_t)p->count * 8) == 0
           && (!sized
               || (entry->sizes == sizes
                   && memcmp(entry->content + p->count, p->sizes, (size_t)sizes * 8) == 0));
}

/* The kernel of a call, borrowed, and what names stand for in it. */
static Kernel *kernel_for(const Parts *p, int64_t *names)
{
    for (int sized = 1; sized >= 0; sized--) {
        uint64_t hash = hash_of(p, sized);
        for (Entry *entry = bins[hash % BINS]; entry != NULL; entry = entry->next)
            if (is_key(entry, p, hash, sized)
                && (sized || names_in(entry->kernel, p->sizes, p->shapes + p->whole, names)))
                return entry->kernel;
    }
    return NULL;
}

static void forget(void)
{
    Entry *gone = NULL;
    for (int k = 0; k < BINS; k++)
        while (bins[k] != NULL) {
            Entry *entry = bins[k];
            bins[k] = entry->next;
            entry->next = gone;
            gone = entry;
        }
    entries = 0;
    while (gone != NULL) { /* in the end, as this may run any code */
        Entry *entry = gone;
        gone = entry->next;
        Py_DECREF((PyObject *)entry->kernel);
        Py_DECREF(entry->objects);
        PyMem_Free(entry->content);
        PyMem_Free(entry);
    }
}

/* Remember the kernel of a call; where there is no memory, nobody does. */
static void remember(const Parts *p, Kernel *kernel)
{
    int sized = kernel->names == 0, sizes = p->shapes + p->whole;
    uint64_t hash = hash_of(p, sized);
    Entry *new;
    if (kernel->sizes != sizes || kernel->operands != p->operand + p->whole)
        return; /* whole numbers that are no sizes to Python */
    for (Entry *entry = bins[hash % BINS]; entry != NULL; entry = entry->next)
        if (entry->kernel == kernel && is_key(entry, p, hash, sized))
            return;
    if (entries >= capacity)
        forget();
    new = PyMem_Calloc(1, sizeof *new);
    if (new == NULL)
        return;
    new->content = PyMem_Malloc((size_t)(p->count + sizes + 1) * 8);
    new->objects = PyTuple_New(p->held);
    if (new->content == NULL || new->objects == NULL) {
        PyErr_Clear();
        PyMem_Free(new->content);
        Py_XDECREF(new->objects);
        PyMem_Free(new);
        return;
    }
    memcpy(new->content, p->words, (size_t)p->count * 8);
    memcpy(new->content + p->count, p->sizes, (size_t)sizes * 8);
    for (int k = 0; k < p->held; k++) {
        Py_IncRef(p->objects[k]);
        PyTuple_SetItem(new->objects, k, p->objects[k]);
    }
    Py_INCREF((PyObject *)kernel);
    new->kernel = kernel;
    new->hash = hash;
    new->sized = sized;
    new->words = p->count;
    new->sizes = sizes;
    new->next = bins[hash % BINS];
    bins[hash % BINS] = new;
    entries++;
}

/* -- modes and lines ----------------------------------------------------------------------------- */

enum { GRAD, PROVENANCE, BACKEND, TRACING, UNSEEN, BLOCK, MODES };

/* What a context variable holds, borrowed: somebody else has it, as nothing sets one meanwhile. */
static PyObject *mode(int which)
{
    PyObject *found = PyObject_CallNoArgs(PyTuple_GetItem(modes, which));
    Py_XDECREF(found);
    return found;
}

/* Whether circumstances are plain, see `runs_now` in trace_buffer.py; whether gradients are on, and
   the scope, borrowed. */
static int circumstances(int *grad, PyObject **scope)
{
    PyObject *listening = PyDict_GetItemWithError(listeners, name_listeners), *here, *on;
    if (listening == NULL || PyTuple_Size(listening) != 0 || mode(BLOCK) != Py_None
        || mode(TRACING) != Py_None || mode(UNSEEN) != Py_False || mode(BACKEND) != llvm)
        return 0;
    here = mode(PROVENANCE);
    on = mode(GRAD);
    if (here == NULL || on == NULL || PyTuple_GetItem(here, 2) != Py_None)
        return 0;
    *grad = on == Py_True;
    *scope = PyTuple_GetItem(here, 0);
    return 1;
}

enum { USER, INSIDE, RECIPE, TOOL }; /* where a file is, see ir/source.py */

static int place_of(PyObject *code)
{
    PyObject *file = PyObject_GetAttr(code, name_file);
    PyObject *place = file != NULL ? PyDict_GetItemWithError(places, file) : NULL;
    Py_XDECREF(file);
    return place != NULL ? (int)PyLong_AsLong(place) : -1; /* Python has not come across it */
}

/* The user's line that led here, as new references; see `user_place` in ir/source.py. 0: there is
   none, or it is for Python to find. */
static int user_line(PyObject **code, int *lasti)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame(), *back, *at;
    Py_XINCREF(frame);
    while (frame != NULL && frame != Py_None) {
        int place;
        *code = PyObject_GetAttr(frame, name_code);
        place = *code != NULL ? place_of(*code) : -1;
        if (place == USER) {
            at = PyObject_GetAttr(frame, name_lasti);
            Py_DECREF(frame);
            if (at == NULL) {
                Py_CLEAR(*code);
                return 0;
            }
            *lasti = (int)PyLong_AsLong(at);
            Py_DECREF(at);
            return 1;
        }
        Py_CLEAR(*code);
        back = place == INSIDE || place == RECIPE ? PyObject_GetAttr(frame, name_back) : NULL;
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return 0;
}

/* -- forward ------------------------------------------------------------------------------------- */

/* A tensor in a state, which it takes. */
static PyObject *hold(PyObject *state, int tracked, int bare)
{
    Handle *h = fresh(handle_class);
    if (h == NULL) {
        Py_DECREF(state);
        return NULL;
    }
    h->state = state;
    h->epoch = *epoch;
    if (!bare) {
        h->buffer = nowhere;
        h->requires_grad = tracked ? Py_True : Py_False;
        Py_INCREF(h->buffer);
        Py_INCREF(h->requires_grad);
    }
    return (PyObject *)h;
}

static PyObject *output_of(PyObject *array, PyObject *call, Py_ssize_t index, int freed)
{
    Output *made = fresh(output_class);
    if (made == NULL)
        return NULL;
    Py_INCREF(array);
    made->array = array;
    Py_INCREF(call);
    made->call = call;
    made->index = index;
    made->freed = (char)freed;
    return (PyObject *)made;
}

/* A tuple of objects, None for NULL. */
static PyObject *tuple_of(PyObject *const *objects, Py_ssize_t n, PyObject *const *more,
                          Py_ssize_t m, Py_ssize_t between)
{
    PyObject *made = PyTuple_New(n + between + m);
    for (Py_ssize_t k = 0; made != NULL && k < n + between + m; k++) {
        PyObject *x = k < n ? objects[k] : k < n + between ? NULL : more[k - n - between];
        x = x != NULL ? x : Py_None;
        Py_IncRef(x);
        PyTuple_SetItem(made, k, x);
    }
    return made;
}

static PyObject *ints_of(const Parts *p)
{
    PyObject *made = PyTuple_New(p->whole);
    for (int k = 0; made != NULL && k < p->whole; k++) {
        PyObject *n = PyLong_FromLongLong(p->ints[k]);
        if (n == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SetItem(made, k, n);
    }
    return made;
}

/* The record of a call; NULL: it could not be made. */
static Call *call_of(Kernel *kernel, const Parts *p, PyObject *numbers, PyObject *given,
                     PyObject *scope)
{
    Call *call = fresh(call_class);
    PyObject *number = PyObject_CallNoArgs(next_number);
    if (call == NULL || number == NULL) {
        Py_XDECREF((PyObject *)call);
        Py_XDECREF(number);
        return NULL;
    }
    call->number = PyLong_AsLongLong(number);
    Py_DECREF(number);
    Py_INCREF((PyObject *)kernel);
    call->kernel = (PyObject *)kernel;
    Py_INCREF(given);
    call->given = given;
    Py_INCREF(scope);
    call->scope = scope;
    call->freed = (char)p->freed;
    call->edges = tuple_of(p->edges, p->operand, NULL, 0, 0);
    call->ints = ints_of(p);
    Py_INCREF(numbers);
    call->numbers = numbers;
    if (call->edges == NULL || call->ints == NULL) {
        Py_DECREF((PyObject *)call);
        return NULL;
    }
    user_line(&call->code, &call->lasti);
    PyErr_Clear(); /* then nobody knows the line */
    return call;
}

/* A call is part of what tells runs apart, with the calls that its operands come from. */
static void count(Run *run, const Kernel *kernel, const Parts *p)
{
    run->calls++;
    run->work += 1 + (Py_ssize_t)((double)PyArray_SIZE((PyArrayObject *)p->arrays[0]) * kernel->weight);
    mix(run, (uint64_t)(uintptr_t)kernel->kind);
    for (int k = 0; k < p->shapes + p->whole; k++)
        mix(run, (uint64_t)p->sizes[k]);
    for (int k = 0; k < p->operand; k++) {
        Output *x = (Output *)p->edges[k];
        if (x != NULL && TYPE(x) == output_class && x->call != NULL) {
            Call *made = (Call *)x->call;
            mix(run, (uint64_t)(made->run == (PyObject *)run ? made->position : -1));
        }
    }
}

/* One result of a call that has run, `call` where a gradient may go through it. */
static PyObject *result_at(const Kernel *kernel, PyObject *array, PyObject *call, Py_ssize_t k,
                           int freed)
{
    PyObject *output;
    if (call == NULL || !(kernel->floating >> k & 1)) {
        Py_INCREF(array);
        return hold(array, 0, 1);
    }
    output = output_of(array, call, k, freed);
    return output != NULL ? hold(output, 1, 0) : NULL;
}

/* All of them, in the structure that the function gives them. */
static PyObject *structure_of(const Kernel *kernel, PyObject **arrays, PyObject *call, int freed)
{
    PyObject *items, *made;
    if (kernel->make == NULL)
        return result_at(kernel, arrays[0], call, 0, freed);
    items = PyTuple_New(kernel->items);
    for (Py_ssize_t i = 0; items != NULL && i < kernel->items; i++) {
        Py_ssize_t k = (Py_ssize_t)kernel->order[i];
        PyObject *x = result_at(kernel, arrays[k], call, k, freed);
        if (x == NULL)
            Py_CLEAR(items);
        else
            PyTuple_SetItem(items, i, x);
    }
    if (items == NULL || kernel->make == (PyObject *)&PyTuple_Type)
        return items;
    made = PyObject_CallFunctionObjArgs(kernel->make, items, NULL);
    Py_DECREF(items);
    return made;
}

/* The result of a call that has run; takes nothing. */
static PyObject *result_of(Run *run, Kernel *kernel, const Parts *p, PyObject *numbers,
                           PyObject **arrays, Py_ssize_t n, int tracked, PyObject *scope)
{
    PyObject *call, *result, *given;
    if (!tracked)
        return structure_of(kernel, arrays, NULL, 0);
    given = tuple_of(p->arrays, p->operand, arrays, n, p->whole);
    call = given != NULL ? (PyObject *)call_of(kernel, p, numbers, given, scope) : NULL;
    Py_XDECREF(given);
    if (call == NULL || enlist(run, (Call *)call) < 0) {
        Py_XDECREF(call);
        return NULL;
    }
    result = structure_of(kernel, arrays, call, p->freed);
    Py_DECREF(call);
    return result;
}

static PyObject *serve_kernel(Run *run, Kernel *kernel, const Parts *p, const int64_t *names,
                              int grad, PyObject *scope)
{
    PyObject *arrays[OUTPUTS], *held, *numbers, *result = NULL;
    int tracked = p->tracked && grad && kernel->floating != 0;
    Brief *brief = tracked ? kernel->tracked : kernel->plain;
    if (brief == NULL || kernel->order == NULL || (!tracked && p->freed && kernel->floating))
        return NULL;
    Py_INCREF((PyObject *)brief);
    Py_INCREF(scope);
    held = tuple_of(p->arrays, p->operand, p->edges, p->operand, 0);
    numbers = p->number != NULL ? PyTuple_Pack(1, p->number) : PyTuple_New(0);
    if (held != NULL && numbers != NULL) {
        if (run_brief(brief, p->arrays, numbers, names, arrays)) {
            count(run, kernel, p);
            result = result_of(run, kernel, p, numbers, arrays, brief->outputs, tracked, scope);
            drop(arrays, brief->outputs);
        }
    }
    Py_DECREF(scope);
    Py_DECREF((PyObject *)brief);
    Py_XDECREF(held);
    Py_XDECREF(numbers);
    return result;
}

/* What Python makes of a call, whose kernel is remembered if it has found one. */
static PyObject *ask(Run *run, const ImmediateCall *call, Parts *p, int known)
{
    PyObject *args = PyTuple_New(call->positional), *named = NULL, *result, *objects = NULL;
    for (Py_ssize_t k = 0; args != NULL && k < call->positional; k++) {
        Py_INCREF(call->args[k]);
        PyTuple_SetItem(args, k, call->args[k]);
    }
    if (args != NULL && call->named > 0)
        named = PyDict_New();
    for (Py_ssize_t k = 0; named != NULL && k < call->named; k++)
        if (PyDict_SetItem(named, PyTuple_GetItem(call->names, k),
                           call->args[call->positional + k]) < 0)
            Py_CLEAR(named);
    if (args == NULL || (call->named > 0 && named == NULL)) {
        Py_XDECREF(args);
        return NULL;
    }
    if (known) /* which are held, as what a key has addresses of may go meanwhile */
        objects = tuple_of(p->objects, p->held, NULL, 0, 0);
    Py_INCREF((PyObject *)run);
    Py_CLEAR(run->offered);
    result = PyObject_Call(call->python, args, named);
    if (result != NULL && objects != NULL && run->offered != NULL
        && TYPE(run->offered) == kernel_type)
        remember(p, (Kernel *)run->offered);
    Py_CLEAR(run->offered);
    Py_DECREF((PyObject *)run);
    Py_XDECREF(objects);
    Py_DECREF(args);
    Py_XDECREF(named);
    return result;
}

/* The run that is under way, or begins here; NULL without an exception: there is none. */
static PyObject *run_here(const ImmediateCall *call)
{
    PyObject *run = PyObject_GetAttr(current, name_run), *begins;
    Parts parts;
    if (run == NULL || run != Py_None)
        return run;
    Py_DECREF(run);
    if (call->arity == COMPOSITE || !take_apart(&parts, call))
        return NULL; /* what it calls begins one */
    begins = PyObject_CallNoArgs(begin_run);
    if (begins == NULL)
        return NULL;
    Py_DECREF(begins);
    if (begins != Py_True)
        return NULL;
    run = PyObject_GetAttr(current, name_run);
    if (run == Py_None)
        Py_CLEAR(run);
    return run;
}

static PyObject *serve(const ImmediateCall *call)
{
    PyObject *scope, *result = NULL, *run = run_here(call);
    int grad, known;
    int64_t names[NAMES];
    Kernel *kernel;
    Parts parts;
    if (run == NULL)
        return NULL;
    known = take_apart(&parts, call);
    kernel = known && ((Run *)run)->calls < long_run ? kernel_for(&parts, names) : NULL;
    if (kernel != NULL && circumstances(&grad, &scope)) {
        Py_INCREF((PyObject *)kernel);
        result = serve_kernel((Run *)run, kernel, &parts, names, grad, scope);
        Py_DECREF((PyObject *)kernel);
    }
    if (result == NULL) {
        PyErr_Clear(); /* Python fails again, if it has to */
        result = ask((Run *)run, call, &parts, known);
    }
    Py_DECREF(run);
    return result;
}

#include "walk.h"

/* -- the module ---------------------------------------------------------------------------------- */

static void keep(PyObject **place, PyObject *object)
{
    Py_INCREF(object);
    *place = object;
}

static PyObject *install(PyObject *module, PyObject *args)
{
    PyObject *types, *of_thread, *getters, *said, *buffer, *number, *begin, *known, *backend;
    long long *found;
    PyTypeObject **classes[] = {&handle_class, &graph_node_class, &leaf_class, &output_class,
                                &call_class,   &moved_class,      &dtype_class, &constant_class};
    if (!PyArg_ParseTuple(args, "O!OO!O!OOOO!Onn", &PyTuple_Type, &types, &of_thread, &PyTuple_Type,
                          &getters, &PyDict_Type, &said, &buffer, &number, &begin, &PyDict_Type, &known,
                          &backend, &capacity, &long_run))
        return NULL;
    if (handle_class != NULL || PyTuple_Size(types) != 8 || PyTuple_Size(getters) != MODES) {
        PyErr_SetString(PyExc_RuntimeError, "installed already, or by other classes or modes");
        return NULL;
    }
    found = PyCapsule_Import(EPOCH_CAPSULE, 0);
    if (found == NULL)
        return NULL;
    epoch = found;
    keep(&current, of_thread);
    keep(&modes, getters);
    keep(&listeners, said);
    keep(&nowhere, buffer);
    keep(&next_number, number);
    keep(&begin_run, begin);
    keep(&places, known);
    keep(&llvm, backend);
    for (int k = 0; k < 8; k++)
        keep((PyObject **)classes[k], PyTuple_GetItem(types, k));
    Py_RETURN_NONE;
}

static PyObject *install_team(PyObject *module, PyObject *args)
{
    long long how, who;
    PyObject *threads;
    if (!PyArg_ParseTuple(args, "LLO", &how, &who, &threads))
        return NULL;
    if (launch == NULL)
        keep(&count_threads, threads);
    launch = (Launch)(intptr_t)how;
    team = (void *)(intptr_t)who;
    Py_RETURN_NONE;
}

static PyObject *clear(PyObject *module, PyObject *unused)
{
    forget();
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"install", install, METH_VARARGS, "Serve these classes from now on."},
    {"install_team", install_team, METH_VARARGS,
     "The addresses of what launches programs that threads share, and of who they are; how many "
     "threads there may be."},
    {"walk", walk_from, METH_O, "The way back from a result; None where Python has to look for it."},
    {"pull", pull, METH_VARARGS,
     "The gradients of the operands of a call, None where there is none: the call, from which "
     "results, to which operands, with gradients so far (as masks), and values as for "
     "FunctionCall.pulled."},
    {"clear", clear, METH_NOARGS, "Forget all kernels."},
    {NULL},
};

static PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "retrograd.accelerate._immediate",
    "Operations that run when they are called, and their gradients.", -1, module_methods,
};

static PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *made = PyType_FromSpec(spec);
    if (made == NULL || PyModule_AddObjectRef(module, name, made) < 0)
        return NULL;
    return (PyTypeObject *)made;
}

/* Names of attributes; 0: there is no memory. */
static int intern_names(void)
{
    struct {
        PyObject **place;
        const char *text;
    } names[] = {
        {&name_run, "run"},        {&name_prim, "prim"},       {&name_array, "array"},
        {&name_shared, "shared"},  {&name_freed, "freed"},     {&name_listeners, "LISTENERS"},
        {&name_back, "f_back"},    {&name_code, "f_code"},     {&name_lasti, "f_lasti"},
        {&name_file, "co_filename"},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if ((*names[k].place = PyUnicode_InternFromString(names[k].text)) == NULL)
            return 0;
    strings = PyDict_New();
    return strings != NULL;
}

PyMODINIT_FUNC PyInit__immediate(void)
{
    static Immediate way_in = serve;
    PyObject *capsule, *module;
    import_array();
    module = intern_names() ? PyModule_Create(&module_definition) : NULL;
    if (module == NULL || PyModule_AddStringConstant(module, "STAMP", RETROGRAD_STAMP) < 0
        || PyModule_AddIntConstant(module, "OUTPUTS", OUTPUTS) < 0
        || PyModule_AddIntConstant(module, "NAMES", NAMES) < 0)
        return NULL;
    brief_type = add_type(module, "BriefProgram", &brief_spec);
    kernel_type = brief_type != NULL ? add_type(module, "CallKernel", &kernel_spec) : NULL;
    walk_type = kernel_type != NULL ? add_type(module, "Walk", &walk_spec) : NULL;
    call_base = walk_type != NULL ? add_type(module, "CallBase", &call_spec) : NULL;
    capsule = PyCapsule_New((void *)&way_in, "retrograd.accelerate._immediate.serve", NULL);
    if (call_base == NULL || capsule == NULL || add_type(module, "Run", &run_spec) == NULL
        || add_type(module, "OutputBase", &output_spec) == NULL
        || PyModule_AddObjectRef(module, "serve", capsule) < 0) {
        Py_XDECREF(capsule);
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(capsule);
    return module;
}
