/* The innermost part of recording: looks operations up in `TraceNode.successors`, the table that
   `eager/quick_dispatch.py` and `eager/call_cache.py` fill.

   Serves operations that were recorded before, in plain circumstances: the trace node is found, the
   buffer is open, gradients are on. For all else, errors included, it calls the function in Python
   that it stands in front of, which starts from the beginning: until a result is certain, nothing
   is changed.

   One difference, which nobody sees: here a buffer knows its handles without holding them. They are
   in a list through the handles themselves, in the order of their making, and leave it when they
   are freed; so a handle that is made takes the memory of the one freed just before. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

#include "handle.h"
#include "immediate.h"

/* Part of the stable ABI from 3.12 on, and the same since 3.9. */
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#define PY_VECTORCALL_ARGUMENTS_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1))
typedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *);
#endif

#define TYPE(object) Py_TYPE((PyObject *)(object)) /* the headers' own does not convert */
#define LARGEST 9007199254740992LL /* 2**53, as in quick_dispatch.py */
#define SPARE 256                  /* freed handles that are kept for new ones */

typedef struct TraceNode {
    PyObject_HEAD
    PyObject *successors;
    /* The first use that was looked up, NULL before: the operation, what it combines this with
       (NULL: the number of this number), and what comes of it. */
    PyObject *op, *other;
    Py_ssize_t number;
    struct TraceNode *result;
    PyObject *duplicate; /* the same, recorded later; NULL or None: there is none */
    long long order;
    char floating, takes_numbers;
} TraceNode;

typedef struct {
    PyObject_HEAD
    PyObject *slots, *numbers; /* a list: there may be None for a number that was not used */
    Links handles;
    PyObject **trace_nodes; /* of the handles made since the last look */
    Py_ssize_t listed, room, before, limit;
    long long last; /* the order of what was recorded last that a gradient may go through */
    char open;
    char ordered; /* it is a tape's: all that is recorded counts as what a gradient may go through */
} TraceBuffer;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *python, *op, *swapped; /* `swapped` is NULL where the first argument has to be a tensor */
    PyObject *attributes, *weak;
    /* arity 0: some tensors, and options; COMPOSITE: the same, which is no single operation where
       it is recorded */
    char arity, numbers;
} Function;


static PyTypeObject *handle_base, *node_base, *buffer_base, *function_type;

/* What `install` is told: the classes built on these, and what is looked up in Python. */
static PyTypeObject *handle_class, *node_class, *buffer_class, *graph_node_class, *dtype_class;
static PyObject *current, *enabled, *integers, *floats;
static PyTypeObject *array_type; /* of NumPy */
static PyObject *name_type, *name_array, *name_dtype, *name_shape;
static PyObject *method_type, *name_buffer, *name_enter_leaf, *no_options, *slice_names;

static Immediate immediate; /* what serves calls where operations run at once; NULL: nothing */
static Handle *spare;       /* linked through `state` */
static int spares;
static long long epoch; /* of functions that were called by transforms, see fast_path.py */

/* -- handles ----------------------------------------------------------------------------------- */

static int is_trace_node(PyObject *x)
{
    return x != NULL && TYPE(x) == node_class;
}

static void unlink_handle(Handle *h)
{
    if (h->links.next != NULL) {
        h->links.previous->next = h->links.next;
        h->links.next->previous = h->links.previous;
        h->links.previous = h->links.next = NULL;
    }
}

static void link_handle(TraceBuffer *buffer, Handle *h)
{
    unlink_handle(h);
    h->links.previous = buffer->handles.previous;
    h->links.next = &buffer->handles;
    buffer->handles.previous->next = &h->links;
    buffer->handles.previous = &h->links;
}

static Handle *handle_of(Links *links)
{
    return (Handle *)((char *)links - offsetof(Handle, links));
}

static int handle_traverse(Handle *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->state);
    Py_VISIT(self->buffer);
    Py_VISIT(self->array);
    Py_VISIT(self->requires_grad);
    Py_VISIT(self->grad);
    return 0;
}

static int handle_clear(Handle *self)
{
    unlink_handle(self);
    Py_CLEAR(self->state);
    Py_CLEAR(self->buffer);
    Py_CLEAR(self->array);
    Py_CLEAR(self->requires_grad);
    Py_CLEAR(self->grad);
    return 0;
}

/* Classes of Python's have a trashcan around this, so freeing a long chain does not recurse. */
static void handle_dealloc(Handle *self)
{
    PyTypeObject *type = TYPE(self);
    PyObject_GC_UnTrack((PyObject *)self);
    unlink_handle(self);
    if (self->weak != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    handle_clear(self);
    if (type == handle_class && spares < SPARE) {
        self->state = (PyObject *)spare;
        spare = self;
        spares++;
    }
    else {
        freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
        release(self);
    }
    Py_DECREF((PyObject *)type);
}

/* Have a spare handle. Afterwards making one cannot fail, nor start a collection of garbage, which
   may run any code. */
static int provide(void)
{
    Handle *h;
    if (spare != NULL)
        return 0;
    h = PyObject_GC_New(Handle, handle_class);
    if (h == NULL)
        return -1;
    memset((char *)h + sizeof(PyObject), 0, sizeof(Handle) - sizeof(PyObject));
    Py_DECREF((PyObject *)handle_class); /* the type is counted when the spare is used */
    h->state = (PyObject *)spare;
    spare = h;
    spares++;
    return 0;
}

static PyMemberDef handle_members[] = {
    {"_state", T_OBJECT_EX, offsetof(Handle, state), 0, NULL},
    {"_buffer", T_OBJECT_EX, offsetof(Handle, buffer), 0, NULL},
    {"_array", T_OBJECT_EX, offsetof(Handle, array), 0, NULL},
    {"_requires_grad", T_OBJECT_EX, offsetof(Handle, requires_grad), 0, NULL},
    {"_grad", T_OBJECT_EX, offsetof(Handle, grad), 0, NULL},
    {"_epoch", T_LONGLONG, offsetof(Handle, epoch), 0, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Handle, weak), READONLY, NULL},
    {NULL},
};

static PyObject *handle_trace_node(Handle *h, void *unused)
{
    PyObject *found = h->state != NULL && is_trace_node(h->state) ? h->state : Py_None;
    (void)unused;
    Py_INCREF(found);
    return found;
}

static void swap(PyObject **a, PyObject **b)
{
    PyObject *before = *a;
    *a = *b;
    *b = before;
}

/* What two handles stand for, exchanged at once: other threads see what was before, or after. The
   first takes the place of the second in the list of a buffer. */
static void exchange(Handle *self, Handle *other)
{
    swap(&self->state, &other->state);
    swap(&self->buffer, &other->buffer);
    swap(&self->array, &other->array);
    swap(&self->requires_grad, &other->requires_grad);
    if (self != other && other->links.next != NULL) {
        unlink_handle(self);
        self->links = other->links;
        self->links.previous->next = self->links.next->previous = &self->links;
        other->links.previous = other->links.next = NULL;
    }
}

static PyObject *handle_exchange(Handle *self, PyObject *other)
{
    if (!PyObject_TypeCheck(other, handle_base)) {
        PyErr_SetString(PyExc_TypeError, "a handle is needed");
        return NULL;
    }
    exchange(self, (Handle *)other);
    Py_RETURN_NONE;
}

/* `state[key] = value` where the state is of a class, and nobody else has it; whether it was. No
   other thread gets in between, as far as the assignment lets none in. */
static PyObject *handle_assign(Handle *self, PyObject *args)
{
    PyObject *cls, *key, *value, *state = self->state;
    int failed;
    if (!PyArg_ParseTuple(args, "OOO", &cls, &key, &value))
        return NULL;
    if (state == NULL || (PyObject *)TYPE(state) != cls || Py_REFCNT(state) != 1)
        Py_RETURN_FALSE;
    Py_INCREF(state);
    failed = PyObject_SetItem(state, key, value);
    Py_DECREF(state);
    if (failed)
        return NULL;
    Py_RETURN_TRUE;
}

static PyMethodDef handle_methods[] = {
    {"_exchange", (PyCFunction)handle_exchange, METH_O, "Stand for what another does, and it for this."},
    {"_assign", (PyCFunction)handle_assign, METH_VARARGS, "Change an array that nobody else has."},
    {NULL},
};

static PyGetSetDef handle_attributes[] = {
    {"_trace_node", (getter)handle_trace_node, NULL, NULL, NULL},
    {NULL},
};

/* -- trace nodes
   ------------------------------------------------------------------------------------- */

static int node_traverse(TraceNode *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->successors);
    Py_VISIT(self->op);
    Py_VISIT(self->other);
    Py_VISIT(self->result);
    Py_VISIT(self->duplicate);
    return 0;
}

static int node_clear(TraceNode *self)
{
    Py_CLEAR(self->successors);
    Py_CLEAR(self->op);
    Py_CLEAR(self->other);
    Py_CLEAR(self->result);
    Py_CLEAR(self->duplicate);
    return 0;
}

static void node_dealloc(TraceNode *self)
{
    PyTypeObject *type = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack((PyObject *)self);
    node_clear(self);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyMemberDef node_members[] = {
    {"successors", T_OBJECT_EX, offsetof(TraceNode, successors), 0, NULL},
    {"duplicate", T_OBJECT, offsetof(TraceNode, duplicate), 0, NULL},
    {"order", T_LONGLONG, offsetof(TraceNode, order), 0, NULL},
    {"floating", T_BOOL, offsetof(TraceNode, floating), 0, NULL},
    {"takes_numbers", T_BOOL, offsetof(TraceNode, takes_numbers), 0, NULL},
    {NULL},
};

static PyType_Slot node_slots[] = {
    {Py_tp_doc, "What recording a known operation needs of a trace node."},
    {Py_tp_traverse, node_traverse},
    {Py_tp_clear, node_clear},
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_members, node_members},
    {0, NULL},
};

static PyType_Spec node_spec = {
    "retrograd.accelerate._tensor.TraceNodeBase", sizeof(TraceNode), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, node_slots,
};

/* -- buffers -------------------------------------------------------------------------------------
   */

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    TraceBuffer *self = (TraceBuffer *)make(type, 0);
    if (self == NULL)
        return NULL;
    self->handles.previous = self->handles.next = &self->handles;
    self->slots = PyDict_New();
    self->numbers = PyList_New(0);
    if (self->slots == NULL || self->numbers == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int buffer_traverse(TraceBuffer *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->slots);
    Py_VISIT(self->numbers);
    for (Py_ssize_t i = 0; i < self->listed; i++)
        Py_VISIT(self->trace_nodes[i]);
    return 0;
}

/* Forget which trace nodes were made, but not how many. */
static void turn(TraceBuffer *self)
{
    PyObject **trace_nodes = self->trace_nodes;
    Py_ssize_t n = self->listed;
    self->before += n;
    self->trace_nodes = NULL;
    self->listed = self->room = 0;
    while (n > 0)
        Py_DECREF(trace_nodes[--n]);
    PyMem_Free(trace_nodes);
}

static int buffer_clear(TraceBuffer *self)
{
    turn(self);
    Py_CLEAR(self->slots);
    Py_CLEAR(self->numbers);
    return 0;
}

static void buffer_dealloc(TraceBuffer *self)
{
    PyTypeObject *type = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack((PyObject *)self);
    if (self->handles.next != NULL)
        while (self->handles.next != &self->handles)
            unlink_handle(handle_of(self->handles.next));
    buffer_clear(self);
    release(self);
    Py_DECREF((PyObject *)type);
}

/* Room for the trace node of another handle. */
static int widen(TraceBuffer *buffer)
{
    PyObject **trace_nodes;
    Py_ssize_t room = 2 * buffer->room + 64;
    if (buffer->listed < buffer->room)
        return 0;
    trace_nodes = PyMem_Realloc(buffer->trace_nodes, (size_t)room * sizeof(PyObject *));
    if (trace_nodes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    buffer->trace_nodes = trace_nodes;
    buffer->room = room;
    return 0;
}

/* Enter a handle; there is room. */
static void enter(TraceBuffer *buffer, Handle *h)
{
    Py_INCREF(h->state);
    buffer->trace_nodes[buffer->listed++] = h->state;
    link_handle(buffer, h);
}

static PyObject *buffer_add(TraceBuffer *self, PyObject *h)
{
    if (!PyObject_TypeCheck(h, handle_base) || !is_trace_node(((Handle *)h)->state)) {
        PyErr_SetString(PyExc_TypeError, "a handle with a trace node is needed");
        return NULL;
    }
    if (widen(self) < 0)
        return NULL;
    enter(self, (Handle *)h);
    Py_RETURN_NONE;
}

static PyObject *buffer_made(TraceBuffer *self, PyObject *unused)
{
    return PyLong_FromSsize_t(self->before + self->listed);
}

static PyObject *buffer_recorded(TraceBuffer *self, PyObject *unused)
{
    PyObject *result = PyList_New(self->listed);
    if (result == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < self->listed; i++) {
        Py_INCREF(self->trace_nodes[i]);
        PyList_SetItem(result, i, self->trace_nodes[i]);
    }
    return result;
}

/* Those of the list that stand for something else now leave it. One whose count of references is 0
   is being freed. */
static PyObject *buffer_live_handles(TraceBuffer *self, PyObject *unused)
{
    Links *here, *next;
    PyObject *result = PyList_New(0);
    if (result == NULL)
        return NULL;
    for (here = self->handles.next; here != &self->handles; here = next) {
        Handle *h = handle_of(here);
        next = here->next;
        if (h->buffer != (PyObject *)self)
            unlink_handle(h);
        else if ((uint32_t)Py_REFCNT((PyObject *)h) != 0 && PyList_Append(result, (PyObject *)h) < 0) {
            Py_DECREF(result);
            return NULL;
        }
    }
    if (!self->ordered) /* a tape has to know all that was recorded */
        turn(self);
    return result;
}

static PyObject *buffer_stay(TraceBuffer *self, PyObject *unused)
{
    Py_RETURN_NONE; /* the buffer has not lost sight of them */
}

static PyObject *buffer_take(TraceBuffer *self, PyObject *unused)
{
    Py_ssize_t n = PyList_Size(self->numbers);
    if (n < 0 || PyList_Append(self->numbers, Py_None) < 0)
        return NULL;
    return PyLong_FromSsize_t(n);
}

static PyObject *buffer_numbers_from(TraceBuffer *self, PyObject *number)
{
    PyObject *result;
    Py_ssize_t n = PyLong_AsSsize_t(number);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    result = PyDict_New();
    for (Py_ssize_t i = n; result != NULL && i < PyList_Size(self->numbers); i++) {
        PyObject *x = PyList_GetItem(self->numbers, i);
        PyObject *k = x != Py_None ? PyLong_FromSsize_t(i) : NULL;
        if (x != Py_None && (k == NULL || PyDict_SetItem(result, k, x) < 0))
            Py_CLEAR(result);
        Py_XDECREF(k);
    }
    return result;
}

static PyObject *buffer_begin(TraceBuffer *self, PyObject *unused)
{
    self->open = 1;
    Py_RETURN_NONE;
}

static PyObject *buffer_end(TraceBuffer *self, PyObject *unused)
{
    self->open = 0;
    Py_RETURN_NONE;
}

static PyMethodDef buffer_methods[] = {
    {"add", (PyCFunction)buffer_add, METH_O, "List a handle that was made."},
    {"made", (PyCFunction)buffer_made, METH_NOARGS, "How many handles were made in this buffer."},
    {"recorded", (PyCFunction)buffer_recorded, METH_NOARGS,
     "The trace nodes of the handles made since the last call of `live_handles`; on a tape, of all."},
    {"live_handles", (PyCFunction)buffer_live_handles, METH_NOARGS,
     "The handles that somebody holds, in the order of their making."},
    {"stay", (PyCFunction)buffer_stay, METH_O, "Go on listing handles that `live_handles` gave."},
    {"take", (PyCFunction)buffer_take, METH_NOARGS, "The number of the next number."},
    {"numbers_from", (PyCFunction)buffer_numbers_from, METH_O, "Numbers from this one on."},
    {"begin", (PyCFunction)buffer_begin, METH_NOARGS, "Record here from now on."},
    {"end", (PyCFunction)buffer_end, METH_NOARGS, "Record nothing here from now on."},
    {NULL},
};

static PyMemberDef buffer_members[] = {
    {"slots", T_OBJECT_EX, offsetof(TraceBuffer, slots), 0, NULL},
    {"numbers", T_OBJECT_EX, offsetof(TraceBuffer, numbers), READONLY, NULL},
    {"limit", T_PYSSIZET, offsetof(TraceBuffer, limit), 0, NULL},
    {"last", T_LONGLONG, offsetof(TraceBuffer, last), 0, NULL},
    {"open", T_BOOL, offsetof(TraceBuffer, open), READONLY, NULL},
    {"ordered", T_BOOL, offsetof(TraceBuffer, ordered), 0, NULL},
    {NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, "What recording a known operation needs of a buffer."},
    {Py_tp_new, buffer_new},
    {Py_tp_traverse, buffer_traverse},
    {Py_tp_clear, buffer_clear},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_members, buffer_members},
    {Py_tp_methods, buffer_methods},
    {0, NULL},
};

static PyType_Spec buffer_spec = {
    "retrograd.accelerate._tensor.TraceBufferBase", sizeof(TraceBuffer), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, buffer_slots,
};

/* -- recording --------------------------------------------------------------------------------- */

/* The functions of this part return NULL without an exception for what has to be done in Python. */

static int is_handle(PyObject *x)
{
    return TYPE(x) == handle_class || PyObject_TypeCheck(x, handle_base);
}

static int is_buffer(PyObject *x)
{
    return TYPE(x) == buffer_class || PyObject_TypeCheck(x, buffer_base);
}

/* Whether a handle is on a tape. */
static int is_taped(Handle *h)
{
    return h->buffer != NULL && is_buffer(h->buffer) && ((TraceBuffer *)h->buffer)->ordered;
}

/* The buffer on which something is recorded with a handle, as a reference of the caller's: its own,
   or that of the thread where it stands for an array that is on no tape. It is open, has room for a
   handle, and there is a spare one: from here on no other code of Python runs until the result is
   there. */
static TraceBuffer *buffer_for(Handle *h)
{
    PyObject *found = h->buffer;
    int leaf = !is_trace_node(h->state);
    if (found == NULL || h->state == NULL)
        return NULL;
    if (leaf && !is_taped(h))
        found = PyObject_GetAttr(current, name_buffer);
    else
        Py_INCREF(found);
    if (found == NULL)
        return NULL;
    if (is_buffer(found) && provide() == 0 && widen((TraceBuffer *)found) == 0) {
        TraceBuffer *buffer = (TraceBuffer *)found;
        int fits = !leaf || buffer->listed <= buffer->limit;
        if (fits && buffer->open && buffer->slots != NULL && buffer->numbers != NULL)
            return buffer;
    }
    Py_DECREF(found);
    return NULL;
}

/* What a handle is in a buffer, borrowed. */
static TraceNode *trace_node_in(TraceBuffer *buffer, Handle *h)
{
    PyObject *found = h->state;
    if (is_trace_node(found))
        return h->buffer == (PyObject *)buffer ? (TraceNode *)found : NULL;
    if (found == NULL || TYPE(found) != graph_node_class)
        return NULL;
    found = PyDict_GetItemWithError(buffer->slots, found);
    return is_trace_node(found) ? (TraceNode *)found : NULL;
}

/* Have an array get a slot in the buffer, if that is all that is missing: 1 where it has one from here
   on and had none. This runs code of Python, so that everything is to be looked up again. */
static int enter_leaf(TraceBuffer *buffer, Handle *h)
{
    PyObject *done;
    int found;
    if (h->state == NULL || TYPE(h->state) != graph_node_class || buffer->ordered
        || PyErr_Occurred() || trace_node_in(buffer, h) != NULL)
        return 0;
    done = PyObject_CallMethodObjArgs((PyObject *)buffer, name_enter_leaf, (PyObject *)h, NULL);
    if (done == NULL) {
        PyErr_Clear(); /* it comes again where Python does the same */
        return 0;
    }
    found = done == Py_True;
    Py_DECREF(done);
    return found;
}

/* The trace node that an operation leads to from a trace node, borrowed. What leads anywhere leads
   there for good, so the first answer is kept at hand. */
static TraceNode *result_of(TraceNode *trace_node, PyObject *op, PyObject *other)
{
    PyObject *found = NULL, *table = NULL;
    if (trace_node->op == op && trace_node->other == other)
        return trace_node->result;
    if (trace_node->successors != NULL)
        table = PyDict_GetItemWithError(trace_node->successors, op);
    if (table != NULL)
        found = PyDict_GetItemWithError(table, other);
    if (!is_trace_node(found))
        return NULL;
    if (trace_node->op == NULL) {
        Py_INCREF(op);
        Py_INCREF(other);
        Py_INCREF(found);
        trace_node->op = op;
        trace_node->other = other;
        trace_node->result = (TraceNode *)found;
    }
    return (TraceNode *)found;
}

/* The same for an operation with number k of a recording. */
static TraceNode *result_of_number(TraceNode *trace_node, PyObject *op, Py_ssize_t k)
{
    PyObject *number;
    TraceNode *found;
    if (trace_node->op == op && trace_node->other == NULL && trace_node->number == k)
        return trace_node->result;
    number = PyLong_FromSsize_t(k);
    if (number == NULL)
        return NULL;
    found = result_of(trace_node, op, number);
    if (trace_node->other == number) {
        Py_CLEAR(trace_node->other);
        trace_node->number = k;
    }
    Py_DECREF(number);
    return found;
}

/* Whether a result requires a gradient; -1: gradients are off, or it failed. */
static int tracks(TraceNode *found, int asked)
{
    PyObject *on;
    int yes;
    if (!asked || !found->floating)
        return 0;
    on = PyObject_CallNoArgs(enabled);
    if (on == NULL)
        return -1;
    yes = on == Py_True;
    Py_DECREF(on);
    return yes ? 1 : -1;
}

/* The trace node of a result at this point of a recording, see `next_in_program_order` in
   quick_dispatch.py: not one that is in the buffer already, or would have come before something
   that is. */
static TraceNode *next_in_program_order(TraceBuffer *buffer, TraceNode *found, TraceNode *x,
                                        TraceNode *other, int tracked)
{
    if (tracked < 0)
        return NULL;
    if ((!tracked && !buffer->ordered) || found == x || found == other)
        return found;
    while (found->order <= buffer->last) {
        if (!is_trace_node(found->duplicate))
            return NULL;
        found = (TraceNode *)found->duplicate;
    }
    return found;
}

/* A handle on a trace node. There is a spare one, and room in the buffer. */
static PyObject *hold(TraceBuffer *buffer, TraceNode *trace_node, int tracked)
{
    Handle *h = spare;
    if ((tracked || buffer->ordered) && trace_node->order > buffer->last)
        buffer->last = trace_node->order;
    spare = (Handle *)h->state;
    spares--;
    PyObject_Init((PyObject *)h, handle_class);
    h->state = (PyObject *)trace_node;
    Py_INCREF(h->state);
    h->buffer = (PyObject *)buffer;
    Py_INCREF(h->buffer);
    h->requires_grad = tracked ? Py_True : Py_False;
    Py_INCREF(h->requires_grad);
    h->epoch = epoch;
    enter(buffer, h);
    PyObject_GC_Track(h);
    return (PyObject *)h;
}

/* How a number is known that is part of a trace node, borrowed: see `number_key` in fast_path.py.
   */
static PyObject *key_of(PyObject *number)
{
    PyObject *text, *key;
    if (PyLong_CheckExact(number))
        return PyDict_GetItemWithError(integers, number);
    text = PyObject_Repr(number);
    if (text == NULL)
        return NULL;
    key = PyDict_GetItemWithError(floats, text);
    Py_DECREF(text);
    return key;
}

static int is_literal(double x)
{
    double size = fabs(x);
    return size == 0.0 || size == 0.5 || size == 1.0 || size == 2.0 || x == 3.0 || isinf(x);
}

/* Whether a number stands in a trace node for any number. */
static int is_free(PyObject *number)
{
    int overflow;
    long long n;
    if (PyFloat_CheckExact(number))
        return !is_literal(PyFloat_AsDouble(number));
    n = PyLong_AsLongLongAndOverflow(number, &overflow);
    return !overflow && -LARGEST <= n && n <= LARGEST && !is_literal((double)n);
}

/* The buffer on which an operation of one handle or two is recorded (`other` may be NULL), in which
   arrays have slots. */
static TraceBuffer *buffer_of(Handle *x, Handle *other)
{
    Handle *lead = other != NULL && !is_trace_node(x->state) && is_taped(other) ? other : x;
    TraceBuffer *buffer = buffer_for(lead);
    int entered = buffer != NULL && enter_leaf(buffer, x);
    if (buffer != NULL && other != NULL)
        entered |= enter_leaf(buffer, other);
    if (!entered)
        return buffer;
    Py_DECREF(buffer);
    return buffer_for(lead);
}

static PyObject *with_number(Function *f, PyObject *op, Handle *x, PyObject *number)
{
    PyObject *result = NULL, *key;
    TraceNode *trace_node, *found;
    int tracked;
    TraceBuffer *buffer = buffer_of(x, NULL);
    if (buffer == NULL)
        return NULL;
    trace_node = trace_node_in(buffer, x);
    if (trace_node != NULL && f->numbers && trace_node->takes_numbers && is_free(number)) {
        found = result_of_number(trace_node, op, PyList_Size(buffer->numbers));
        tracked = found != NULL ? tracks(found, x->requires_grad == Py_True) : -1;
        found = next_in_program_order(buffer, found, trace_node, NULL, tracked);
        if (found != NULL && PyList_Append(buffer->numbers, number) == 0)
            result = hold(buffer, found, tracked);
    }
    else if (trace_node != NULL) {
        key = key_of(number);
        found = key != NULL ? result_of(trace_node, op, key) : NULL;
        tracked = found != NULL ? tracks(found, x->requires_grad == Py_True) : -1;
        found = next_in_program_order(buffer, found, trace_node, NULL, tracked);
        if (found != NULL)
            result = hold(buffer, found, tracked);
    }
    Py_DECREF(buffer);
    return result;
}

static PyObject *with_handle(PyObject *op, Handle *x, Handle *other)
{
    PyObject *result = NULL;
    TraceNode *trace_node, *second, *found = NULL;
    int tracked = -1;
    TraceBuffer *buffer = buffer_of(x, other);
    if (buffer == NULL)
        return NULL;
    trace_node = trace_node_in(buffer, x);
    second = trace_node != NULL ? trace_node_in(buffer, other) : NULL;
    if (second != NULL)
        found = result_of(trace_node, op, (PyObject *)second);
    if (found != NULL)
        tracked = tracks(found, x->requires_grad == Py_True || other->requires_grad == Py_True);
    found = next_in_program_order(buffer, found, trace_node, second, tracked);
    if (found != NULL)
        result = hold(buffer, found, tracked);
    Py_DECREF(buffer);
    return result;
}

/* An operation of a tensor and something else. */
static PyObject *pair(Function *f, PyObject *op, PyObject *x, PyObject *other)
{
    if (PyFloat_CheckExact(other) || PyLong_CheckExact(other))
        return with_number(f, op, (Handle *)x, other);
    if (!is_handle(other) || ((Handle *)other)->state == NULL)
        return NULL;
    return with_handle(op, (Handle *)x, (Handle *)other);
}

/* An operation of one tensor. */
static PyObject *single(Function *f, Handle *x)
{
    PyObject *result = NULL;
    TraceNode *trace_node, *found;
    int tracked;
    TraceBuffer *buffer = buffer_of(x, NULL);
    if (buffer == NULL)
        return NULL;
    trace_node = trace_node_in(buffer, x);
    found = trace_node != NULL ? result_of(trace_node, f->op, Py_None) : NULL;
    tracked = found != NULL ? tracks(found, x->requires_grad == Py_True) : -1;
    found = next_in_program_order(buffer, found, trace_node, NULL, tracked);
    if (found != NULL)
        result = hold(buffer, found, tracked);
    Py_DECREF(buffer);
    return result;
}

/* Whether an argument is one of those that `_PLAIN` in call_cache.py names: to hash and compare
   them runs no code of others. */
static int is_plain(PyObject *x)
{
    return PyLong_CheckExact(x) || PyBool_Check(x) || PyUnicode_CheckExact(x) || x == Py_None
           || x == Py_Ellipsis;
}

static PyObject *item_of(PyObject *x, Py_ssize_t i)
{
    return PyList_CheckExact(x) ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i);
}

static Py_ssize_t items_of(PyObject *x)
{
    return PyList_CheckExact(x) ? PyList_Size(x) : PyTuple_CheckExact(x) ? PyTuple_Size(x) : -1;
}

/* The parts of a slice, if these are plain. */
static PyObject *parts_of(PyObject *x)
{
    PyObject *parts = PyTuple_New(3);
    for (int i = 0; parts != NULL && i < 3; i++) {
        PyObject *part = PyObject_GetAttr(x, PyTuple_GetItem(slice_names, i));
        if (part == NULL || !(PyLong_CheckExact(part) || part == Py_None)) {
            Py_XDECREF(part);
            Py_CLEAR(parts);
        }
        else
            PyTuple_SetItem(parts, i, part);
    }
    return parts;
}

/* An argument, or an element of one (`inner`), as part of a key, see `entry` in call_cache.py; NULL
   if it cannot be one. Trace nodes take the places of handles, whether one requires a gradient is
   noted. */
static PyObject *entry_of(TraceBuffer *buffer, PyObject *x, int inner, int *asked)
{
    PyObject *found = NULL;
    Py_ssize_t n;
    if (is_handle(x)) {
        found = (PyObject *)trace_node_in(buffer, (Handle *)x);
        if (((Handle *)x)->requires_grad == Py_True)
            *asked = 1;
    }
    else if (is_plain(x)) {
        if (!inner || !(PyBool_Check(x) || PyUnicode_CheckExact(x)))
            found = x;
    }
    else if (TYPE(x) == &PySlice_Type)
        return parts_of(x);
    else if (inner)
        return NULL;
    else if (PyFloat_CheckExact(x))
        return PyObject_Repr(x);
    else if (TYPE(x) == dtype_class)
        return PyLong_FromVoidPtr(x);
    else if ((n = items_of(x)) >= 0) {
        PyObject *items = PyTuple_New(n);
        for (Py_ssize_t i = 0; items != NULL && i < n; i++) {
            PyObject *item = items_of(x) == n ? entry_of(buffer, item_of(x, i), 1, asked) : NULL;
            if (item == NULL)
                Py_CLEAR(items);
            else
                PyTuple_SetItem(items, i, item);
        }
        return items;
    }
    Py_XINCREF(found);
    return found;
}

/* Arguments as `lookup_call` in call_cache.py looks them up, see `options` there. */
static PyObject *key_of_options(TraceBuffer *buffer, PyObject *const *options, Py_ssize_t count,
                                PyObject *names, int *asked)
{
    PyObject *key, *values, *types;
    if (count == 1 && is_handle(options[0])) {
        *asked = ((Handle *)options[0])->requires_grad == Py_True;
        Py_INCREF(no_options);
        return no_options;
    }
    values = PyTuple_New(count);
    types = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count && values != NULL && types != NULL; i++) {
        PyObject *entry = entry_of(buffer, options[i], 0, asked);
        if (entry == NULL)
            Py_CLEAR(values);
        else {
            PyTuple_SetItem(values, i, entry);
            Py_INCREF((PyObject *)TYPE(options[i]));
            PyTuple_SetItem(types, i, (PyObject *)TYPE(options[i]));
        }
    }
    if (names == NULL)
        names = PyTuple_GetItem(no_options, 2);
    key = values != NULL && types != NULL ? PyTuple_Pack(3, values, types, names) : NULL;
    Py_XDECREF(values);
    Py_XDECREF(types);
    return key;
}

/* The first handle among arguments, and in lists that are arguments. */
static Handle *first_handle(PyObject *const *args, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        if (is_handle(args[i]))
            return (Handle *)args[i];
        for (Py_ssize_t k = 0; k < items_of(args[i]); k++)
            if (is_handle(item_of(args[i], k)))
                return (Handle *)item_of(args[i], k);
    }
    return NULL;
}

/* The handle among arguments that says which buffer is recorded in: the first one, unless it stands
   for an array, and another one is on a tape. */
static Handle *leading_handle(Handle *x, PyObject *const *args, Py_ssize_t n)
{
    if (x == NULL || is_trace_node(x->state) || is_taped(x))
        return x;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (is_handle(args[i]) && is_taped((Handle *)args[i]))
            return (Handle *)args[i];
        for (Py_ssize_t k = 0; k < items_of(args[i]); k++)
            if (is_handle(item_of(args[i], k)) && is_taped((Handle *)item_of(args[i], k)))
                return (Handle *)item_of(args[i], k);
    }
    return x;
}

/* Whether handles among arguments are in a buffer what a key says, and `trace node` is one of them;
   -1: a handle is not. Collections of garbage while the key was made may have changed that. */
static int is_among(TraceBuffer *buffer, PyObject *const *options, PyObject *key,
                    TraceNode *trace_node)
{
    PyObject *values = PyTuple_GetItem(key, 0);
    int found = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(values); i++) {
        PyObject *x = options[i], *value = PyTuple_GetItem(values, i);
        Py_ssize_t n = items_of(x);
        if (n >= 0 && n != items_of(value))
            return -1;
        for (Py_ssize_t k = n < 0 ? -1 : 0; k < (n < 0 ? 0 : n); k++) {
            PyObject *item = k < 0 ? x : item_of(x, k), *known = k < 0 ? value : item_of(value, k);
            if (!is_handle(item))
                continue;
            if ((PyObject *)trace_node_in(buffer, (Handle *)item) != known)
                return -1;
            found |= known == (PyObject *)trace_node;
        }
    }
    return found;
}

/* A function of some tensors, with options. */
static PyObject *with_options(Function *f, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *result = NULL, *key;
    Py_ssize_t count = n + (names != NULL ? PyTuple_Size(names) : 0);
    Handle *x = handle_class != NULL ? first_handle(args, n) : NULL;
    int asked = 0;
    Handle *lead = leading_handle(x, args, n);
    TraceBuffer *buffer = x != NULL ? buffer_for(lead) : NULL;
    if (buffer == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (is_handle(args[i]))
            enter_leaf(buffer, (Handle *)args[i]);
    key = key_of_options(buffer, args, count, names, &asked);
    Py_DECREF(buffer);
    buffer = key != NULL ? buffer_for(lead) : NULL;
    if (buffer != NULL) {
        TraceNode *trace_node = trace_node_in(buffer, x), *found = NULL;
        int tracked = -1, given = 0;
        if (trace_node != NULL && buffer->before + buffer->listed < buffer->limit)
            found = result_of(trace_node, f->op, key);
        if (found != NULL)
            given = is_among(buffer, args, key, found);
        if (found != NULL && given >= 0)
            tracked = tracks(found, asked);
        found = next_in_program_order(buffer, found, trace_node, given > 0 ? found : trace_node,
                                      tracked);
        if (found != NULL)
            result = hold(buffer, found, tracked);
        Py_DECREF(buffer);
    }
    Py_XDECREF(key);
    return result;
}

/* A function of one or two arguments; NULL without an exception as above. */
static PyObject *serve(Function *f, PyObject *x, PyObject *other)
{
    if (handle_class == NULL || f->arity == COMPOSITE)
        return NULL;
    if (f->arity == 1)
        return is_handle(x) ? single(f, (Handle *)x) : NULL;
    if (is_handle(x))
        return pair(f, f->op, x, other);
    if (f->swapped != NULL && is_handle(other)
        && (PyFloat_CheckExact(x) || PyLong_CheckExact(x)))
        return pair(f, f->swapped, other, x);
    return NULL;
}

/* The same where operations run at once, of positional arguments and named ones behind them. */
static PyObject *run_at_once(Function *f, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    ImmediateCall call = {f->op, f->python, args, n, 0, names, f->arity, f->numbers};
    if (immediate == NULL || handle_class == NULL)
        return NULL;
    if (names != NULL)
        call.named = PyTuple_Size(names);
    if (f->arity == 1 || f->arity == 2) {
        if (n != f->arity || call.named > 0 || !is_handle(args[0]))
            return NULL;
    }
    return (*immediate)(&call);
}

/* -- functions --------------------------------------------------------------------------------- */

static PyObject *function_vectorcall(PyObject *callable, PyObject *const *args, size_t flags,
                                     PyObject *names)
{
    Function *self = (Function *)callable;
    Py_ssize_t n = (Py_ssize_t)(flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET);
    Py_ssize_t named = names != NULL ? PyTuple_Size(names) : 0;
    PyObject *positional, *keywords = NULL, *result = NULL;
    if (self->arity == 0)
        result = with_options(self, args, n, names);
    else if (named == 0 && n == self->arity)
        result = serve(self, args[0], n == 2 ? args[1] : NULL);
    if (result == NULL && !PyErr_Occurred())
        result = run_at_once(self, args, n, names);
    if (result != NULL || PyErr_Occurred())
        return result;
    positional = PyTuple_New(n);
    if (positional == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_INCREF(args[i]);
        PyTuple_SetItem(positional, i, args[i]);
    }
    if (named > 0) {
        keywords = PyDict_New();
        for (Py_ssize_t i = 0; keywords != NULL && i < named; i++)
            if (PyDict_SetItem(keywords, PyTuple_GetItem(names, i), args[n + i]) < 0)
                Py_CLEAR(keywords);
    }
    if (named == 0 || keywords != NULL)
        result = PyObject_Call(self->python, positional, keywords);
    Py_DECREF(positional);
    Py_XDECREF(keywords);
    return result;
}

static PyObject *function_call(Function *self, PyObject *args, PyObject *keywords)
{
    return PyObject_Call(self->python, args, keywords);
}

static PyObject *function_get(PyObject *self, PyObject *object, PyObject *type)
{
    if (object == NULL || object == Py_None) {
        Py_INCREF(self);
        return self;
    }
    return PyObject_CallFunctionObjArgs(method_type, self, object, NULL);
}

static PyObject *function_repr(PyObject *self)
{
    PyObject *result, *name = PyObject_GetAttrString(self, "__qualname__");
    if (name == NULL)
        return NULL;
    result = PyUnicode_FromFormat("<function %U>", name);
    Py_DECREF(name);
    return result;
}

/* Copied and pickled by name, as functions are. */
static PyObject *function_reduce(PyObject *self, PyObject *unused)
{
    return PyObject_GetAttrString(self, "__qualname__");
}

static int function_traverse(Function *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->python);
    Py_VISIT(self->op);
    Py_VISIT(self->swapped);
    Py_VISIT(self->attributes);
    return 0;
}

static int function_clear(Function *self)
{
    Py_CLEAR(self->attributes);
    return 0;
}

static void function_dealloc(Function *self)
{
    PyTypeObject *type = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack((PyObject *)self);
    if (self->weak != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    Py_CLEAR(self->attributes);
    Py_CLEAR(self->python);
    Py_CLEAR(self->op);
    Py_CLEAR(self->swapped);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"python", "arity", "op", "swapped", "numbers", NULL};
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *python, *op, *swapped = Py_None;
    int arity, numbers = 0;
    Function *self;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OiO|Op", names, &python, &arity, &op,
                                     &swapped, &numbers))
        return NULL;
    if (arity < 0 || arity > COMPOSITE) {
        PyErr_SetString(PyExc_ValueError, "functions are of 0, 1 or 2 arrays, or composites");
        return NULL;
    }
    self = (Function *)make(type, 0);
    if (self == NULL)
        return NULL;
    self->call = function_vectorcall;
    self->arity = (char)arity;
    self->numbers = (char)numbers;
    Py_INCREF(python);
    self->python = python;
    Py_INCREF(op);
    self->op = op;
    if (swapped != Py_None) {
        Py_INCREF(swapped);
        self->swapped = swapped;
    }
    return (PyObject *)self;
}

static PyMemberDef function_members[] = {
    {"python", T_OBJECT, offsetof(Function, python), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(Function, attributes), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weak), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, call), READONLY, NULL},
    {NULL},
};

static PyGetSetDef function_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyMethodDef function_methods[] = {
    {"__reduce__", function_reduce, METH_NOARGS, NULL},
    {NULL},
};

static PyType_Slot function_slots[] = {
    {Py_tp_new, function_new},
    {Py_tp_call, function_call},
    {Py_tp_descr_get, function_get},
    {Py_tp_repr, function_repr},
    {Py_tp_traverse, function_traverse},
    {Py_tp_clear, function_clear},
    {Py_tp_dealloc, function_dealloc},
    {Py_tp_members, function_members},
    {Py_tp_getset, function_attributes},
    {Py_tp_methods, function_methods},
    {0, NULL},
};

static PyType_Spec function_spec = {
    "retrograd.accelerate._tensor.Function", sizeof(Function), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
        | Py_TPFLAGS_METHOD_DESCRIPTOR,
    function_slots,
};

/* -- operators --------------------------------------------------------------------------------- */

/* The functions behind `x + y` and `2 + x`; for one operand the first alone. */
#define BINARY(X) \
    X(add) X(sub) X(mul) X(truediv) X(floordiv) X(mod) X(matmul) X(and) X(or) X(xor) X(lshift) \
    X(rshift) X(pow)
#define UNARY(X) X(neg) X(pos) X(abs) X(invert)

#define NUMBER(name) OPERATOR_##name,
enum { BINARY(NUMBER) UNARY(NUMBER) OPERATORS };

static Function *plain[OPERATORS], *reflected[OPERATORS];

static PyObject *operate(Function *f, PyObject *x, PyObject *other)
{
    PyObject *args[] = {x, other}, *result = serve(f, x, other);
    if (result == NULL && !PyErr_Occurred())
        result = run_at_once(f, args, other != NULL ? 2 : 1, NULL);
    if (result != NULL || PyErr_Occurred())
        return result;
    return PyObject_CallFunctionObjArgs(f->python, x, other, NULL);
}

static PyObject *binary(int which, PyObject *a, PyObject *b)
{
    int first = is_handle(a);
    Function *f = first ? plain[which] : reflected[which];
    if (f == NULL)
        Py_RETURN_NOTIMPLEMENTED;
    return first ? operate(f, a, b) : operate(f, b, a);
}

static PyObject *unary(int which, PyObject *x)
{
    if (plain[which] == NULL) {
        PyErr_SetString(PyExc_TypeError, "bad operand type");
        return NULL;
    }
    return operate(plain[which], x, NULL);
}

#define SLOT_2(name) \
    static PyObject *slot_##name(PyObject *a, PyObject *b) { return binary(OPERATOR_##name, a, b); }
#define SLOT_1(name) \
    static PyObject *slot_##name(PyObject *x) { return unary(OPERATOR_##name, x); }
BINARY(SLOT_2)
UNARY(SLOT_1)

/* A new reference to an attribute, NULL without an exception where there is none. */
static PyObject *look(PyObject *x, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(x, name);
    if (found == NULL)
        PyErr_Clear();
    return found;
}

static int is_same(PyObject *a, PyObject *b, PyObject *name)
{
    PyObject *x = look(a, name), *y = look(b, name);
    int same = x != NULL && y != NULL && (x == y || PyObject_RichCompareBool(x, y, Py_EQ) == 1);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return same;
}

/* Whether two states, of which none is a node, are known to have the same shape and dtype. */
static int is_like(PyObject *before, PyObject *after)
{
    PyObject *x, *y;
    int same;
    if (before == NULL || after == NULL || TYPE(after) == graph_node_class)
        return 0;
    if (is_trace_node(before) || is_trace_node(after)) {
        if (!is_trace_node(before) || !is_trace_node(after))
            return 0;
        x = look(before, name_type);
        y = look(after, name_type);
        same = x != NULL && x == y;
    }
    else {
        x = TYPE(before) == array_type ? Py_NewRef(before) : look(before, name_array);
        y = TYPE(after) == array_type ? Py_NewRef(after) : look(after, name_array);
        same = x != NULL && y != NULL && is_same(x, y, name_dtype) && is_same(x, y, name_shape);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    return same;
}

/* `x += y` has x stand for what `x + y` is: see `functions/tensor/inplace.py`. */
static PyObject *in_place(int which, PyObject *a, PyObject *b)
{
    Handle *h = (Handle *)a;
    PyObject *result;
    if (!is_handle(a) || plain[which] == NULL)
        return binary(which, a, b);
    /* What was made before the last call of a function by a transform may be none of its own. */
    if (h->epoch != epoch || h->state == NULL || TYPE(h->state) == graph_node_class)
        return PyObject_CallMethod(a, "_change", "OO", (PyObject *)plain[which], b);
    result = binary(which, a, b);
    if (result == NULL || result == Py_NotImplemented)
        return result;
    if (Py_REFCNT(result) == 1 && TYPE(result) == handle_class
        && is_like(h->state, ((Handle *)result)->state)) {
        exchange(h, (Handle *)result);
        Py_INCREF(a);
    }
    else {
        PyObject *fitted = PyObject_CallMethod(a, "_take", "O", result);
        a = fitted;
    }
    Py_DECREF(result);
    return a;
}

#define SLOT_IN_PLACE(name) \
    static PyObject *slot_i##name(PyObject *a, PyObject *b) \
    { \
        return in_place(OPERATOR_##name, a, b); \
    }
BINARY(SLOT_IN_PLACE)

static PyObject *slot_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    return slot_pow(a, b);
}

static PyObject *slot_ipower(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    return slot_ipow(a, b);
}

static PyType_Slot handle_slots[] = {
    {Py_tp_doc, "The fields of a handle, and the operators of its class."},
    {Py_tp_traverse, handle_traverse},
    {Py_tp_clear, handle_clear},
    {Py_tp_dealloc, handle_dealloc},
    {Py_tp_members, handle_members},
    {Py_tp_getset, handle_attributes},
    {Py_tp_methods, handle_methods},
    {Py_nb_add, slot_add},
    {Py_nb_subtract, slot_sub},
    {Py_nb_multiply, slot_mul},
    {Py_nb_true_divide, slot_truediv},
    {Py_nb_floor_divide, slot_floordiv},
    {Py_nb_remainder, slot_mod},
    {Py_nb_matrix_multiply, slot_matmul},
    {Py_nb_and, slot_and},
    {Py_nb_or, slot_or},
    {Py_nb_xor, slot_xor},
    {Py_nb_lshift, slot_lshift},
    {Py_nb_rshift, slot_rshift},
    {Py_nb_power, slot_power},
    {Py_nb_inplace_add, slot_iadd},
    {Py_nb_inplace_subtract, slot_isub},
    {Py_nb_inplace_multiply, slot_imul},
    {Py_nb_inplace_true_divide, slot_itruediv},
    {Py_nb_inplace_floor_divide, slot_ifloordiv},
    {Py_nb_inplace_remainder, slot_imod},
    {Py_nb_inplace_matrix_multiply, slot_imatmul},
    {Py_nb_inplace_and, slot_iand},
    {Py_nb_inplace_or, slot_ior},
    {Py_nb_inplace_xor, slot_ixor},
    {Py_nb_inplace_lshift, slot_ilshift},
    {Py_nb_inplace_rshift, slot_irshift},
    {Py_nb_inplace_power, slot_ipower},
    {Py_nb_negative, slot_neg},
    {Py_nb_positive, slot_pos},
    {Py_nb_absolute, slot_abs},
    {Py_nb_invert, slot_invert},
    {0, NULL},
};

static PyType_Spec handle_spec = {
    "retrograd.accelerate._tensor.HandleBase", sizeof(Handle), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, handle_slots,
};

/* Take the functions of an operator out of a class, so that the slots above stand in their place.
   */
static int take_over(PyObject *cls, const char *name, int which, int two)
{
    char attribute[32];
    Function **places[] = {&plain[which], &reflected[which]};
    for (int i = 0; i <= two; i++) {
        PyObject *found;
        PyOS_snprintf(attribute, sizeof attribute, "__%s%s__", i ? "r" : "", name);
        found = PyObject_GetAttrString(cls, attribute);
        if (found == NULL || TYPE(found) != function_type) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "%s is not a function of this module", attribute);
            Py_XDECREF(found);
            return -1;
        }
        *places[i] = (Function *)found;
        if (PyObject_SetAttrString(cls, attribute, NULL) < 0)
            return -1;
    }
    return 0;
}

static PyObject *install(PyObject *module, PyObject *args)
{
    PyTypeObject *handles, *nodes, *buffers, *graph_nodes, *dtypes;
    PyObject *buffer, *on, *ints, *texts;
    if (!PyArg_ParseTuple(args, "OOOOOOOO!O!", &handles, &buffers, &nodes, &graph_nodes, &dtypes, &buffer, &on,
                          &PyDict_Type, &ints, &PyDict_Type, &texts))
        return NULL;
    if (handle_class != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the recorder is installed already");
        return NULL;
    }
#define TWO(name) if (take_over((PyObject *)handles, #name, OPERATOR_##name, 1) < 0) return NULL;
#define ONE(name) if (take_over((PyObject *)handles, #name, OPERATOR_##name, 0) < 0) return NULL;
    BINARY(TWO)
    UNARY(ONE)
    current = buffer;
    enabled = on;
    integers = ints;
    floats = texts;
    buffer_class = buffers;
    node_class = nodes;
    graph_node_class = graph_nodes;
    dtype_class = dtypes;
    handle_class = handles;
    Py_INCREF(buffer);
    Py_INCREF(on);
    Py_INCREF(ints);
    Py_INCREF(texts);
    Py_INCREF((PyObject *)buffers);
    Py_INCREF((PyObject *)nodes);
    Py_INCREF((PyObject *)graph_nodes);
    Py_INCREF((PyObject *)dtypes);
    Py_INCREF((PyObject *)handles);
    Py_RETURN_NONE;
}

static PyObject *install_immediate(PyObject *module, PyObject *capsule)
{
    Immediate *found = PyCapsule_GetPointer(capsule, "retrograd.accelerate._immediate.serve");
    if (found == NULL)
        return NULL;
    immediate = *found;
    Py_RETURN_NONE;
}

static PyObject *set_epoch(PyObject *module, PyObject *number)
{
    long long found = PyLong_AsLongLong(number);
    if (found == -1 && PyErr_Occurred())
        return NULL;
    epoch = found;
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"set_epoch", set_epoch, METH_O, "Note this number in handles that are made from now on."},
    {"install", install, METH_VARARGS, "Serve these classes from now on."},
    {"install_immediate", install_immediate, METH_O, "Have this serve operations that run at once."},
    {NULL},
};

static PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "retrograd.accelerate._tensor",
    "The innermost part of recording, compiled.", -1, module_methods,
};

static PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *made = PyType_FromSpec(spec);
    if (made == NULL || PyModule_AddObjectRef(module, name, made) < 0)
        return NULL;
    return (PyTypeObject *)made;
}

PyMODINIT_FUNC PyInit__tensor(void)
{
    PyObject *types, *number, *module = PyModule_Create(&module_definition);
    if (module == NULL || PyModule_AddStringConstant(module, "STAMP", RETROGRAD_STAMP) < 0)
        return NULL;
    number = PyCapsule_New(&epoch, EPOCH_CAPSULE, NULL);
    if (number == NULL || PyModule_AddObjectRef(module, "epoch", number) < 0)
        return NULL;
    Py_DECREF(number);
    types = PyImport_ImportModule("types");
    method_type = types != NULL ? PyObject_GetAttrString(types, "MethodType") : NULL;
    Py_XDECREF(types);
    types = PyImport_ImportModule("numpy");
    array_type = types != NULL ? (PyTypeObject *)PyObject_GetAttrString(types, "ndarray") : NULL;
    Py_XDECREF(types);
    name_type = PyUnicode_InternFromString("type");
    name_array = PyUnicode_InternFromString("array");
    name_dtype = PyUnicode_InternFromString("dtype");
    name_shape = PyUnicode_InternFromString("shape");
    name_buffer = PyUnicode_InternFromString("buffer");
    name_enter_leaf = PyUnicode_InternFromString("enter_leaf");
    no_options = Py_BuildValue("(()()())");
    slice_names = Py_BuildValue("(sss)", "start", "stop", "step");
    handle_base = add_type(module, "HandleBase", &handle_spec);
    node_base = handle_base != NULL ? add_type(module, "TraceNodeBase", &node_spec) : NULL;
    buffer_base = node_base != NULL ? add_type(module, "TraceBufferBase", &buffer_spec) : NULL;
    function_type = buffer_base != NULL ? add_type(module, "Function", &function_spec) : NULL;
    if (method_type == NULL || array_type == NULL || name_type == NULL || name_array == NULL
        || name_dtype == NULL || name_shape == NULL || name_buffer == NULL || name_enter_leaf == NULL
        || no_options == NULL || slice_names == NULL || function_type == NULL) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
