/* Calls of compiled programs: from Python's arguments to Python's results in one function.

   What a call takes and gives is described by steps, which are written down once: `CallRoute` has
   those that take arguments of one structure apart, and the programs for arrays of different shapes,
   each a `CallRecord` with the steps that make its result. `Entry` is the shorter way for lists of
   arrays. `runtime/fast_call.py` makes them, and says what happens where there is no compiler.

   Everything from the first look at the arguments to the last change happens under the interpreter's
   lock, with nothing in between that could run anybody's Python code: the collector is off, dicts are
   only searched if all keys are plain strings, and what may be the last reference to something is
   dropped at the end. So arguments need not be held, and a call that turns out not to be served, at
   whatever point before `commit`, has done nothing. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdint.h>
#include <string.h>

#include "handle.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#define FLOATING_STATE _mm_getcsr()
#define SET_FLOATING_STATE(state) _mm_setcsr(state)
#else
#define FLOATING_STATE 0u
#define SET_FLOATING_STATE(state) (void)(state)
#endif
#define SUBNORMAL_OPERAND 2u /* stays set once an operand was one, unless they are flushed */

#define TYPE(object) Py_TYPE((PyObject *)(object))
/* References to what may be immortal (constants, dtypes) are counted by the interpreter's own functions:
   what the stable ABI has inline does not know of such objects. */
#define HELD 256 /* words on the stack for a call; one that needs more allocates them */

/* Steps that take arguments apart, and steps that make results; the numbers are fast_call.py's. */
enum { SAME, TUPLE, LIST, DICT, OBJECT, EQUAL, FIELD, REPEATED, DISTINCT, TENSOR, ARRAY, FLOAT, INT,
       SCALAR };
enum { CONSTANT = 0, INSTANCE = 4, MADE = 5, COPY = 6 }; /* with TUPLE, LIST, DICT */

typedef int64_t (*Program)(void *frame, int64_t thread, int64_t threads, void *pool);

/* How many calls of a program have met subnormal numbers, and with how many its next call goes the long
   way, which looks into it: see subnormal_watch.py. */
typedef struct {
    int64_t calls, enough;
} Watch;

static PyTypeObject *handle_base, *handle_class, *specs_type, *record_type;
static const long long *epoch; /* which handles are marked with */
static PyObject *missed; /* what is returned by calls that are not served; they have done nothing */

/* Drop what may be immortal; NULL is fine. */
static void drop(PyObject **at)
{
    PyObject *object = *at;
    *at = NULL;
    Py_DecRef(object);
}

/* The C array of a sequence of Python numbers, with room for one more; NULL with an exception. */
static int64_t *numbers_of(PyObject *sequence, Py_ssize_t *count)
{
    Py_ssize_t n = PySequence_Size(sequence);
    int64_t *found = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof(int64_t));
    if (found == NULL) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *item = PySequence_GetItem(sequence, k);
        found[k] = item != NULL ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred()) {
            PyMem_Free(found);
            return NULL;
        }
    }
    *count = n;
    return found;
}

/* -- arrays that are expected ------------------------------------------------------------------- */

/* What one array has to be: by its number among those that a call brings. */
typedef struct {
    Py_ssize_t which;
    PyArray_Descr *dtype;
    int rank, flags;      /* flags that it must have */
    Py_ssize_t most;      /* the most references that there may be to it */
    int64_t *shape;
} Spec;

typedef struct {
    PyObject_HEAD
    Py_ssize_t count;
    Spec *specs;
} Specs;

static int fits(PyObject *object, const Spec *spec)
{
    PyArrayObject *array = (PyArrayObject *)object;
    Py_ssize_t references = Py_REFCNT(object) & 0xffffffff; /* Python 3.14 has flags above */
    const npy_intp *shape;
    if (PyArray_DESCR(array) != spec->dtype || PyArray_NDIM(array) != spec->rank
        || (PyArray_FLAGS(array) & spec->flags) != spec->flags || references > spec->most)
        return 0;
    shape = PyArray_DIMS(array);
    for (int i = 0; i < spec->rank; i++)
        if (shape[i] != spec->shape[i])
            return 0;
    return 1;
}

static int spec_fill(Spec *spec, PyObject *row)
{
    PyObject *dtype, *shape;
    Py_ssize_t rank;
    if (!PyArg_ParseTuple(row, "nOOin", &spec->which, &dtype, &shape, &spec->flags, &spec->most))
        return -1;
    if (!PyArray_DescrCheck(dtype)) {
        PyErr_SetString(PyExc_TypeError, "a dtype is needed");
        return -1;
    }
    spec->shape = numbers_of(shape, &rank);
    if (spec->shape == NULL)
        return -1;
    spec->rank = (int)rank;
    Py_IncRef(dtype);
    spec->dtype = (PyArray_Descr *)dtype;
    return 0;
}

static PyObject *specs_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *rows;
    Specs *self;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &rows))
        return NULL;
    self = (Specs *)make(type, 0);
    if (self == NULL)
        return NULL;
    self->specs = PyMem_Calloc((size_t)PyList_Size(rows) + 1, sizeof(Spec));
    if (self->specs == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (; self->count < PyList_Size(rows); self->count++)
        if (spec_fill(&self->specs[self->count], PyList_GetItem(rows, self->count)) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    return (PyObject *)self;
}

static void specs_dealloc(Specs *self)
{
    PyTypeObject *type = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    for (Py_ssize_t k = 0; k < self->count; k++) {
        PyMem_Free(self->specs[k].shape);
        Py_DecRef((PyObject *)self->specs[k].dtype);
    }
    PyMem_Free(self->specs);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyType_Slot specs_slots[] = {
    {Py_tp_doc, "Arrays as they have to be: rows of (number, dtype, shape, flags, references)."},
    {Py_tp_new, specs_new},
    {Py_tp_dealloc, specs_dealloc},
    {0, NULL},
};

static PyType_Spec specs_spec = {
    "retrograd.accelerate._fast_call.ArraySpecs", sizeof(Specs), 0, Py_TPFLAGS_DEFAULT, specs_slots,
};

/* -- runs of programs ---------------------------------------------------------------------------- */

/* Run a program; see `rg_launch`. */
static int64_t run(Program program, int64_t *frame, Watch *watch)
{
    unsigned before = FLOATING_STATE;
    int64_t result;
    if (before & SUBNORMAL_OPERAND) /* to write takes ten times longer than to read */
        SET_FLOATING_STATE(before & ~SUBNORMAL_OPERAND);
    result = program(frame, 0, 1, NULL);
    if (FLOATING_STATE & SUBNORMAL_OPERAND)
        watch->calls++;
    return result;
}

/* -- programs on lists of arrays ---------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    Specs *inputs, *outputs;
    int64_t *frame;  /* where addresses go */
    Program program; /* NULL: it is not to be run */
    Watch *watch;    /* of the program, where it is */
    int donates;     /* whether it overwrites inputs */
} Entry;

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *inputs, *outputs;
    Py_ssize_t frame, program, watch;
    int donates;
    Entry *self;
    if (!PyArg_ParseTuple(args, "O!O!nnnp", specs_type, &inputs, specs_type, &outputs, &frame,
                          &program, &watch, &donates))
        return NULL;
    self = (Entry *)make(type, 0);
    if (self == NULL)
        return NULL;
    Py_INCREF(inputs);
    Py_INCREF(outputs);
    self->inputs = (Specs *)inputs;
    self->outputs = (Specs *)outputs;
    self->frame = (int64_t *)(intptr_t)frame;
    self->program = (Program)(intptr_t)program;
    self->watch = (Watch *)(intptr_t)watch;
    self->donates = donates;
    return (PyObject *)self;
}

static void entry_dealloc(Entry *self)
{
    PyTypeObject *type = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_DECREF(self->inputs);
    Py_DECREF(self->outputs);
    release(self);
    Py_DECREF((PyObject *)type);
}

/* The addresses of the arrays of a list, if all are as they have to be. */
static int bind(PyObject *list, const Specs *specs, int64_t *addresses)
{
    if (PyList_Size(list) != specs->count)
        return 0;
    for (Py_ssize_t k = 0; k < specs->count; k++) {
        PyObject *array = PyList_GetItem(list, k);
        if (!PyArray_CheckExact(array) || !fits(array, &specs->specs[k]))
            return 0;
        addresses[k] = (int64_t)(intptr_t)PyArray_DATA((PyArrayObject *)array);
    }
    return 1;
}

static PyObject *entry_enter(Entry *self, PyObject *const *args, Py_ssize_t count)
{
    int64_t failed = 0;
    if (count != 2 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "two lists of arrays are needed");
        return NULL;
    }
    if ((self->program != NULL && self->watch->calls >= self->watch->enough)
        || !bind(args[0], self->inputs, self->frame)
        || !bind(args[1], self->outputs, self->frame + self->inputs->count))
        return PyLong_FromLong(-1);
    if (self->program != NULL)
        failed = run(self->program, self->frame, self->watch);
    /* Here, as whoever called may be interrupted before knowing that it has run. */
    if (self->program != NULL && self->donates && failed == 0
        && PyList_SetSlice(args[0], 0, PyList_Size(args[0]), NULL) < 0)
        return NULL;
    return PyLong_FromLongLong(failed);
}

static PyMethodDef entry_methods[] = {
    {"enter", (PyCFunction)(void (*)(void))entry_enter, METH_FASTCALL,
     "Write the addresses of inputs and outputs into the frame, and run the program: its result; -1 "
     "where an array is not as it has to be, or the run is to be looked into, and nothing was done. A "
     "program that overwrites inputs leaves none in their list."},
    {NULL},
};

static PyType_Slot entry_slots[] = {
    {Py_tp_doc, "A program on a frame: of ArraySpecs of inputs and outputs, the addresses of frame, "
                "program and watch, and whether it overwrites inputs."},
    {Py_tp_new, entry_new},
    {Py_tp_dealloc, entry_dealloc},
    {Py_tp_methods, entry_methods},
    {0, NULL},
};

static PyType_Spec entry_spec = {
    "retrograd.accelerate._fast_call.Entry", sizeof(Entry), 0, Py_TPFLAGS_DEFAULT, entry_slots,
};

/* -- records ------------------------------------------------------------------------------------ */

/* An output: a new array, or the array of a donated input (`dtype` is NULL), in a tensor of a class,
   one slot of which gets a value. */
typedef struct {
    PyArray_Descr *dtype;
    PyObject *class, *slot, *value; /* NULL: tensors as all are */
    int rank;
    int64_t donor;
    int64_t *shape;
} Output;

/* A step that makes a part of the result, in the next register. */
typedef struct {
    int kind;
    PyObject *what; /* a dict with the same keys, a class of tuples, or a constant */
    Py_ssize_t count;
    int64_t *items; /* registers */
    PyObject *keys; /* of a dict */
} Put;

/* A donated tensor, and the output that gets its array, or -1: then that is dropped, after all. */
typedef struct {
    int64_t input, output;
} Donor;

typedef struct {
    PyObject_HEAD
    Specs *specs; /* of the arrays that a call brings, in the order in which they are looked at */
    int64_t *captured; /* addresses of inputs that no call brings */
    Py_ssize_t given, captives, outputs, puts, donors;
    Output *output;
    Put *put;
    Donor *donor;
    int64_t first, root; /* the register of the first part, and of the result */
    Program program;     /* NULL: it is to run later, on addresses that the result brings */
    int64_t *frame;      /* its frame; no two calls use it at a time */
    Watch *watch;
} Record;

static int output_fill(Output *output, PyObject *row)
{
    PyObject *dtype, *shape, *class = NULL, *slot = NULL, *value = NULL;
    Py_ssize_t rank;
    long long donor;
    if (!PyArg_ParseTuple(row, "OLO|OOO", &dtype, &donor, &shape, &class, &slot, &value))
        return -1;
    if (class != NULL
        && (value == NULL || !PyType_Check(class)
            || !PyType_IsSubtype((PyTypeObject *)class, handle_class)
            || PyType_GetSlot(Py_TYPE(slot), Py_tp_descr_set) == NULL)) {
        PyErr_SetString(PyExc_TypeError, "a class of tensors, a slot of it and a value are needed");
        return -1;
    }
    Py_XINCREF(class);
    Py_XINCREF(slot);
    Py_IncRef(value);
    output->class = class;
    output->slot = slot;
    output->value = value;
    output->shape = numbers_of(shape, &rank);
    if (output->shape == NULL)
        return -1;
    output->rank = (int)rank;
    output->donor = donor;
    if (dtype != Py_None && !PyArray_DescrCheck(dtype)) {
        PyErr_SetString(PyExc_TypeError, "a dtype is needed");
        return -1;
    }
    if (dtype != Py_None) {
        Py_IncRef(dtype);
        output->dtype = (PyArray_Descr *)dtype;
    }
    return 0;
}

static int put_fill(Put *put, PyObject *row)
{
    PyObject *items;
    if (!PyArg_ParseTuple(row, "iOOO!", &put->kind, &put->what, &items, &PyTuple_Type, &put->keys)) {
        put->what = put->keys = NULL;
        return -1;
    }
    Py_IncRef(put->what);
    Py_IncRef(put->keys);
    put->items = numbers_of(items, &put->count);
    return put->items != NULL ? 0 : -1;
}

static int donor_fill(Donor *donor, PyObject *row)
{
    long long input, output;
    if (!PyArg_ParseTuple(row, "LL", &input, &output))
        return -1;
    donor->input = input;
    donor->output = output;
    return 0;
}

/* Have a table of a record filled from a list of rows. */
#define FILL(table, count, rows, fill) \
    do { \
        table = PyMem_Calloc((size_t)PyList_Size(rows) + 1, sizeof *table); \
        if (table == NULL) { \
            PyErr_NoMemory(); \
            goto failed; \
        } \
        for (; count < PyList_Size(rows); count++) \
            if (fill(&table[count], PyList_GetItem(rows, count)) < 0) { \
                count++; \
                goto failed; \
            } \
    } while (0)

static PyObject *record_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *captured, *outputs, *puts, *donors;
    Py_ssize_t given, program, frame, watch;
    long long first, root;
    Record *self;
    if (!PyArg_ParseTuple(args, "nOO!O!O!LLnnn", &given, &captured, &PyList_Type, &outputs,
                          &PyList_Type, &puts, &PyList_Type, &donors, &first, &root, &program,
                          &frame, &watch))
        return NULL;
    self = (Record *)make(type, 0);
    if (self == NULL)
        return NULL;
    self->given = given;
    self->first = first;
    self->root = root;
    self->program = (Program)(intptr_t)program;
    self->frame = (int64_t *)(intptr_t)frame;
    self->watch = (Watch *)(intptr_t)watch;
    self->captured = numbers_of(captured, &self->captives);
    if (self->captured == NULL)
        goto failed;
    FILL(self->output, self->outputs, outputs, output_fill);
    FILL(self->put, self->puts, puts, put_fill);
    FILL(self->donor, self->donors, donors, donor_fill);
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static int record_traverse(Record *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    for (Py_ssize_t k = 0; k < self->puts; k++) {
        Py_VISIT(self->put[k].what);
        Py_VISIT(self->put[k].keys);
    }
    for (Py_ssize_t k = 0; k < self->outputs; k++) {
        Py_VISIT(self->output[k].class);
        Py_VISIT(self->output[k].slot);
        Py_VISIT(self->output[k].value);
    }
    return 0;
}

static int record_clear(Record *self)
{
    Py_ssize_t puts = self->puts;
    self->puts = 0;
    for (Py_ssize_t k = 0; k < puts; k++) {
        drop(&self->put[k].what);
        drop(&self->put[k].keys);
        PyMem_Free(self->put[k].items);
    }
    for (Py_ssize_t k = 0; k < self->outputs; k++) {
        drop(&self->output[k].class);
        drop(&self->output[k].slot);
        drop(&self->output[k].value);
    }
    return 0;
}

static void record_dealloc(Record *self)
{
    PyTypeObject *type = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack((PyObject *)self);
    record_clear(self);
    for (Py_ssize_t k = 0; k < self->outputs; k++) {
        Py_DecRef((PyObject *)self->output[k].dtype);
        PyMem_Free(self->output[k].shape);
    }
    Py_XDECREF((PyObject *)self->specs);
    PyMem_Free(self->captured);
    PyMem_Free(self->output);
    PyMem_Free(self->put);
    PyMem_Free(self->donor);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *record_arrange(Record *self, PyObject *specs)
{
    PyObject *before = (PyObject *)self->specs;
    if (TYPE(specs) != specs_type) {
        PyErr_SetString(PyExc_TypeError, "ArraySpecs are needed");
        return NULL;
    }
    Py_INCREF(specs);
    self->specs = (Specs *)specs;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyMethodDef record_methods[] = {
    {"arrange", (PyCFunction)record_arrange, METH_O,
     "Have the arrays looked at in the order of these ArraySpecs."},
    {NULL},
};

static PyType_Slot record_slots[] = {
    {Py_tp_doc, "A program at known sizes, and what makes the result of a call."},
    {Py_tp_new, record_new},
    {Py_tp_traverse, record_traverse},
    {Py_tp_clear, record_clear},
    {Py_tp_dealloc, record_dealloc},
    {Py_tp_methods, record_methods},
    {0, NULL},
};

static PyType_Spec record_spec = {
    "retrograd.accelerate._fast_call.CallRecord", sizeof(Record), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, record_slots,
};

/* -- routes ------------------------------------------------------------------------------------- */

/* A step that takes arguments apart: what is in a register has to be of this class, or this object;
   its items go to the next free registers. */
typedef struct {
    int kind, is_donated;
    int64_t from; /* the register */
    PyObject *what;
    Py_ssize_t count; /* items */
    PyObject *keys;   /* of a dict, or the slot of a field */
    int64_t *others;  /* registers: what this one repeats, or those with distinct objects */
    Py_ssize_t number;
} Take;

typedef struct {
    PyObject_HEAD
    Py_ssize_t takes, registers, leaves;
    int donates; /* whether a leaf is donated */
    Take *take;
    PyObject *records; /* a tuple */
} Route;

/* What a call works with: its registers, then, by leaf, arrays (NULL: a number), the tensors that
   hold them, and the bits of numbers. */
typedef struct {
    PyObject **registers, **arrays;
    Handle **handles;
    int64_t *numbers;
} Leaves;

static int take_fill(Take *take, PyObject *row)
{
    long long from;
    if (!PyArg_ParseTuple(row, "iLOnpO!", &take->kind, &from, &take->what, &take->count,
                          &take->is_donated, &PyTuple_Type, &take->keys)) {
        take->what = take->keys = NULL;
        return -1;
    }
    take->from = from;
    Py_IncRef(take->what);
    Py_IncRef(take->keys);
    if (take->kind == REPEATED || take->kind == DISTINCT) {
        take->others = numbers_of(take->keys, &take->number);
        if (take->others == NULL)
            return -1;
    }
    if (take->kind == FIELD
        && (PyTuple_Size(take->keys) != 1
            || PyType_GetSlot(Py_TYPE(PyTuple_GetItem(take->keys, 0)), Py_tp_descr_get) == NULL)) {
        PyErr_SetString(PyExc_TypeError, "a slot is needed");
        return -1;
    }
    if (take->kind == TENSOR
        && (!PyType_Check(take->what)
            || !PyType_IsSubtype((PyTypeObject *)take->what, handle_base))) {
        PyErr_SetString(PyExc_TypeError, "a class of tensors is needed");
        return -1;
    }
    return 0;
}

static PyObject *route_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *takes;
    Route *self;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &takes))
        return NULL;
    self = (Route *)make(type, 0);
    if (self == NULL)
        return NULL;
    FILL(self->take, self->takes, takes, take_fill);
    self->registers = 2;
    for (Py_ssize_t k = 0; k < self->takes; k++) {
        self->leaves += self->take[k].kind >= TENSOR;
        self->donates |= self->take[k].is_donated;
        self->registers += self->take[k].count;
    }
    self->records = PyTuple_New(0);
    if (self->records == NULL)
        goto failed;
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static int route_traverse(Route *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->records);
    for (Py_ssize_t k = 0; k < self->takes; k++) {
        Py_VISIT(self->take[k].what);
        Py_VISIT(self->take[k].keys);
    }
    return 0;
}

static int route_clear(Route *self)
{
    Py_ssize_t takes = self->takes;
    self->takes = 0;
    Py_CLEAR(self->records);
    for (Py_ssize_t k = 0; k < takes; k++) {
        drop(&self->take[k].what);
        drop(&self->take[k].keys);
        PyMem_Free(self->take[k].others);
    }
    return 0;
}

static void route_dealloc(Route *self)
{
    PyTypeObject *type = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack((PyObject *)self);
    route_clear(self);
    PyMem_Free(self->take);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *route_offer(Route *self, PyObject *records)
{
    PyObject *before = self->records;
    if (!PyTuple_CheckExact(records)) {
        PyErr_SetString(PyExc_TypeError, "a tuple of CallRecords is needed");
        return NULL;
    }
    for (Py_ssize_t k = 0; k < PyTuple_Size(records); k++) {
        PyObject *record = PyTuple_GetItem(records, k);
        if (TYPE(record) != record_type || ((Record *)record)->specs == NULL) {
            PyErr_SetString(PyExc_TypeError, "CallRecords that have been arranged are needed");
            return NULL;
        }
    }
    Py_INCREF(records);
    self->records = records;
    Py_DECREF(before);
    Py_RETURN_NONE;
}

/* -- taking arguments apart --------------------------------------------------------------------- */

/* The values of a dict for all keys, in their order; whether it has them. */
static int take_entries(PyObject *dict, PyObject *keys, Py_ssize_t n, PyObject **to)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, k = 0;
    while (k < n && PyDict_Next(dict, &at, &key, &value) && key == PyTuple_GetItem(keys, k))
        to[k++] = value;
    if (k == n)
        return 1;
    /* Another order, or equal keys: searched, if that calls no comparison but that of strings. */
    at = 0;
    while (PyDict_Next(dict, &at, &key, &value))
        if (!PyUnicode_CheckExact(key))
            return 0;
    for (k = 0; k < n; k++) {
        key = PyTuple_GetItem(keys, k);
        if (!PyUnicode_CheckExact(key) || (to[k] = PyDict_GetItemWithError(dict, key)) == NULL)
            return 0;
    }
    return 1;
}

/* The values of an object's attributes, if it has these and no others. */
static int take_attributes(PyObject *x, const Take *take, PyObject **to)
{
    PyObject *dict = PyObject_GenericGetDict(x, NULL);
    int found = dict != NULL && PyDict_CheckExact(dict) && PyDict_Size(dict) == take->count
                && take_entries(dict, take->keys, take->count, to);
    Py_XDECREF(dict); /* the object has it */
    return found;
}

/* Whether an object is equal to another without asking Python code. */
static int is_equal(PyObject *x, PyObject *y)
{
    if (x == y)
        return 1;
    if (Py_TYPE(x) != Py_TYPE(y)
        || !(PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyUnicode_CheckExact(x)
             || PyBytes_CheckExact(x)))
        return 0;
    return PyObject_RichCompareBool(x, y, Py_EQ) == 1;
}

/* Whether a slot of an object has this very value. */
static int has_field(PyObject *x, PyObject *slot, PyObject *wanted)
{
    descrgetfunc get = (descrgetfunc)PyType_GetSlot(Py_TYPE(slot), Py_tp_descr_get);
    PyObject *value = get(slot, x, (PyObject *)Py_TYPE(x));
    int found = value == wanted;
    Py_DecRef(value);
    return found;
}

/* Whether what is in registers are different objects. */
static int are_distinct(PyObject *const *registers, const Take *take)
{
    PyObject *held[HELD] = {NULL}, **table = held;
    size_t room = HELD, at;
    int distinct = 1;
    while (room < 2 * (size_t)take->number)
        room *= 2;
    if (room > HELD && (table = PyMem_Calloc(room, sizeof *table)) == NULL)
        return 0;
    for (Py_ssize_t k = 0; distinct && k < take->number; k++) {
        PyObject *x = registers[take->others[k]];
        at = ((size_t)(uintptr_t)x >> 4) * 0x9E3779B97F4A7C15u >> 20;
        for (at %= room; table[at] != NULL && table[at] != x; at = (at + 1) % room)
            ;
        distinct = table[at] == NULL;
        table[at] = x;
    }
    if (table != held)
        PyMem_Free(table);
    return distinct;
}

/* The bits of a number; whether they are to be had. */
static int take_number(int kind, PyObject *x, int64_t *bits)
{
    int overflow = 0;
    if (kind == INT) {
        *bits = PyLong_AsLongLongAndOverflow(x, &overflow);
        return !overflow;
    }
    *bits = 0;
    if (kind == FLOAT) {
        double value = PyFloat_AsDouble(x);
        memcpy(bits, &value, sizeof value);
    }
    else {
        PyArray_ScalarAsCtype(x, bits);
    }
    return 1;
}

/* Follow the steps from the objects in the first two registers; whether all is as it should be. Tensors
   that require a gradient are taken if the call is not tracked: then nobody can ask for one. */
static int take_apart(const Route *route, const Leaves *found, int untracked)
{
    PyObject **free_register = found->registers + 2;
    Py_ssize_t leaf = 0;
    for (const Take *take = route->take; take < route->take + route->takes; take++) {
        PyObject *x = found->registers[take->from], *array = x;
        int holds;
        switch (take->kind) {
        case SAME:
            holds = x == take->what;
            break;
        case EQUAL:
            holds = is_equal(x, take->what);
            break;
        case FIELD:
            holds = has_field(x, PyTuple_GetItem(take->keys, 0), take->what);
            break;
        case REPEATED:
            holds = x == found->registers[take->others[0]];
            break;
        case DISTINCT:
            holds = are_distinct(found->registers, take);
            break;
        default:
            holds = (PyObject *)Py_TYPE(x) == take->what;
        }
        if (!holds)
            return 0;
        switch (take->kind) {
        case SAME:
        case EQUAL:
        case FIELD:
        case REPEATED:
        case DISTINCT:
            continue;
        case OBJECT:
            if (!take_attributes(x, take, free_register))
                return 0;
            free_register += take->count;
            continue;
        case TUPLE:
            if (PyTuple_Size(x) != take->count)
                return 0;
            for (Py_ssize_t i = 0; i < take->count; i++)
                *free_register++ = PyTuple_GetItem(x, i);
            continue;
        case LIST:
            if (PyList_Size(x) != take->count)
                return 0;
            for (Py_ssize_t i = 0; i < take->count; i++)
                *free_register++ = PyList_GetItem(x, i);
            continue;
        case DICT:
            if (PyDict_Size(x) != take->count
                || !take_entries(x, take->keys, take->count, free_register))
                return 0;
            free_register += take->count;
            continue;
        case TENSOR:
            array = ((Handle *)x)->state;
            if (array == NULL)
                return 0;
            /* One that is donated must be no more than its array. */
            if (!PyArray_CheckExact(array) && !take->is_donated && ((Handle *)x)->array != NULL
                && (untracked || ((Handle *)x)->requires_grad != Py_True))
                array = ((Handle *)x)->array;
            found->handles[leaf] = (Handle *)x;
            /* fall through */
        case ARRAY:
            if (!PyArray_CheckExact(array))
                return 0;
            found->arrays[leaf++] = array;
            continue;
        default:
            if (!take_number(take->kind, x, &found->numbers[leaf]))
                return 0;
            found->arrays[leaf++] = NULL;
        }
    }
    return 1;
}

/* The first record that the arrays fit; NULL: there is none. */
static Record *choose(const Route *route, const Leaves *found)
{
    Py_ssize_t count = PyTuple_Size(route->records);
    for (Py_ssize_t r = 0; r < count; r++) {
        Record *record = (Record *)PyTuple_GetItem(route->records, r);
        const Spec *spec = record->specs->specs, *end = spec + record->specs->count;
        while (spec < end && fits(found->arrays[spec->which], spec))
            spec++;
        if (spec == end)
            return record;
    }
    return NULL;
}

/* The same where leaves are donated: arrays are counted, so that one that comes twice is seen to. */
static Record *choose_for_donors(const Route *route, const Leaves *found)
{
    Record *chosen;
    for (Py_ssize_t k = 0; k < route->leaves; k++)
        Py_XINCREF(found->arrays[k]);
    chosen = choose(route, found);
    for (Py_ssize_t k = 0; k < route->leaves; k++)
        Py_XDECREF(found->arrays[k]);
    return chosen;
}

/* -- making results ----------------------------------------------------------------------------- */

/* Addresses of the inputs: of numbers a cell each, of arrays their data. */
static void place_inputs(const Record *record, const Leaves *found, int64_t *frame, int64_t *cells)
{
    for (Py_ssize_t k = 0; k < record->given; k++) {
        PyObject *array = found->arrays[k];
        if (array == NULL) {
            cells[k] = found->numbers[k];
            frame[k] = (int64_t)(intptr_t)&cells[k];
        }
        else {
            frame[k] = (int64_t)(intptr_t)PyArray_DATA((PyArrayObject *)array);
        }
    }
    for (Py_ssize_t k = 0; k < record->captives; k++)
        frame[record->given + k] = record->captured[k];
}

/* A tensor that has nothing yet. */
static Handle *new_handle(const Output *output)
{
    Handle *handle;
    if (output->class == NULL) {
        handle = (Handle *)PyType_GenericAlloc(handle_class, 0);
        if (handle != NULL)
            handle->epoch = *epoch;
        return handle;
    }
    handle = (Handle *)PyType_GenericAlloc((PyTypeObject *)output->class, 0);
    if (handle != NULL) {
        handle->epoch = *epoch;
        descrsetfunc set = (descrsetfunc)PyType_GetSlot(Py_TYPE(output->slot), Py_tp_descr_set);
        if (set(output->slot, (PyObject *)handle, output->value) < 0)
            Py_CLEAR(handle);
    }
    return handle;
}

/* Tensors for the outputs, in `parts`, and the addresses of their arrays. One that gets the array of
   a donated tensor gets it in the end. 0: there is no memory. */
static int make_outputs(const Record *record, const Leaves *found, PyObject **parts,
                        Handle **handles, int64_t *addresses)
{
    for (Py_ssize_t k = 0; k < record->outputs; k++) {
        const Output *output = &record->output[k];
        Handle *handle = new_handle(output);
        PyObject *array;
        if (handle == NULL)
            return 0;
        parts[k] = (PyObject *)handle;
        handles[k] = handle;
        if (output->dtype == NULL) {
            array = found->arrays[output->donor];
        }
        else {
            Py_IncRef((PyObject *)output->dtype); /* which is taken */
            array = PyArray_NewFromDescr(&PyArray_Type, output->dtype, output->rank,
                                         (npy_intp *)output->shape, NULL, NULL, 0, NULL);
            if (array == NULL)
                return 0;
            handle->state = array;
        }
        addresses[k] = (int64_t)(intptr_t)PyArray_DATA((PyArrayObject *)array);
    }
    return 1;
}

/* A tuple of what is in registers, which it takes. */
static PyObject *make_tuple(const Put *put, PyObject **parts)
{
    PyObject *made = PyTuple_New(put->count);
    for (Py_ssize_t i = 0; made != NULL && i < put->count; i++) {
        PyTuple_SetItem(made, i, parts[put->items[i]]);
        parts[put->items[i]] = NULL;
    }
    return made;
}

/* The same of a class of tuples, which has the constructor of tuples. */
static PyObject *make_instance(const Put *put, PyObject **parts)
{
    newfunc make = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    PyObject *args = PyTuple_New(1), *items = make_tuple(put, parts), *made = NULL;
    if (args != NULL && items != NULL) {
        PyTuple_SetItem(args, 0, items);
        items = NULL;
        made = make((PyTypeObject *)put->what, args, NULL);
    }
    Py_XDECREF(items);
    Py_XDECREF(args);
    return made;
}

static PyObject *make_list(const Put *put, PyObject **parts)
{
    PyObject *made = PyList_New(put->count);
    for (Py_ssize_t i = 0; made != NULL && i < put->count; i++) {
        PyList_SetItem(made, i, parts[put->items[i]]);
        parts[put->items[i]] = NULL;
    }
    return made;
}

static PyObject *make_dict(const Put *put, PyObject **parts)
{
    PyObject *made = PyDict_Copy(put->what);
    for (Py_ssize_t i = 0; made != NULL && i < put->count; i++) {
        PyObject **part = &parts[put->items[i]];
        if (PyDict_SetItem(made, PyTuple_GetItem(put->keys, i), *part) < 0)
            Py_CLEAR(made);
        drop(part);
    }
    return made;
}

/* An object of a class, with the dict in a register for its attributes. No constructor runs. */
static PyObject *make_object(const Put *put, PyObject **parts, PyObject *nothing)
{
    newfunc make = (newfunc)PyType_GetSlot(&PyBaseObject_Type, Py_tp_new);
    PyObject *made = make((PyTypeObject *)put->what, nothing, NULL);
    if (made != NULL && PyObject_GenericSetDict(made, parts[put->items[0]], NULL) < 0)
        Py_CLEAR(made);
    drop(&parts[put->items[0]]);
    return made;
}

/* Containers of what is in registers, each in the next register. 0: there is no memory. */
static int build(const Record *record, PyObject **parts)
{
    PyObject **to = parts + record->first;
    for (const Put *put = record->put; put < record->put + record->puts; put++, to++) {
        switch (put->kind) {
        case TUPLE:
            *to = make_tuple(put, parts);
            break;
        case LIST:
            *to = make_list(put, parts);
            break;
        case DICT:
            *to = make_dict(put, parts);
            break;
        case INSTANCE:
            *to = make_instance(put, parts);
            break;
        case MADE:
            *to = make_object(put, parts, put->keys); /* which is empty */
            break;
        case COPY:
            *to = parts[put->items[0]];
            Py_IncRef(*to);
            break;
        default:
            Py_IncRef(put->what);
            *to = put->what;
        }
        if (*to == NULL)
            return 0;
    }
    return 1;
}

/* A list of the arrays, with None for numbers; NULL: there is no memory. */
static PyObject *list_arrays(const Leaves *found, Py_ssize_t n)
{
    PyObject *list = PyList_New(n);
    for (Py_ssize_t k = 0; list != NULL && k < n; k++) {
        PyObject *array = found->arrays[k] != NULL ? found->arrays[k] : Py_None;
        Py_IncRef(array);
        PyList_SetItem(list, k, array);
    }
    return list;
}

/* Donated tensors are gone from here on. Arrays that no output gets are dropped after all else, which
   may run any code. */
static void commit(const Record *record, const Leaves *found, Handle **handles, PyObject *gone)
{
    PyObject **dropped = found->arrays; /* of no use any more */
    Py_ssize_t count = 0, donors = record->donors;
    for (Py_ssize_t k = 0; k < donors; k++) {
        Donor donor = record->donor[k];
        Handle *handle = found->handles[donor.input];
        PyObject *array = handle->state;
        Py_IncRef(gone);
        handle->state = gone;
        if (donor.output < 0)
            dropped[count++] = array;
        else
            handles[donor.output]->state = array;
    }
    while (count > 0)
        Py_DECREF(dropped[--count]);
}

/* The result of a record; NULL: nothing was done. Where the program is to run later, its addresses
   and cells are in bytes of the result, and the arrays in a list. */
static PyObject *fill(const Record *record, const Leaves *found, PyObject **parts,
                      Handle **handles, PyObject *gone)
{
    Py_ssize_t n = record->given, m = record->outputs;
    int64_t *frame = record->frame, *cells = found->numbers;
    PyObject *result;
    if (record->program != NULL && record->watch->calls >= record->watch->enough)
        return NULL;
    if (record->program == NULL) {
        Py_ssize_t slots = n + record->captives + m;
        parts[m] = PyBytes_FromStringAndSize(NULL, (slots + n) * (Py_ssize_t)sizeof(int64_t));
        parts[m + 1] = parts[m] != NULL ? list_arrays(found, n) : NULL;
        if (parts[m + 1] == NULL)
            return NULL;
        frame = (int64_t *)PyBytes_AsString(parts[m]);
        cells = frame + slots;
    }
    place_inputs(record, found, frame, cells);
    if (!make_outputs(record, found, parts, handles, frame + n + record->captives)
        || !build(record, parts)
        || (record->program != NULL && run(record->program, frame, record->watch) != 0))
        return NULL;
    result = parts[record->root];
    commit(record, found, handles, gone);
    return result;
}

/* The result of a call for the record that its arrays fit; NULL: nothing was done. */
static PyObject *serve_record(Record *record, const Leaves *found, PyObject *gone)
{
    PyObject *held[HELD], **parts = held, *result;
    Py_ssize_t count = record->first + record->puts, words = count + record->outputs;
    if (words > HELD && (parts = PyMem_Malloc((size_t)words * sizeof *parts)) == NULL)
        return NULL;
    memset(parts, 0, (size_t)count * sizeof *parts);
    Py_INCREF((PyObject *)record); /* whose owner may drop it when code is run in the end */
    result = fill(record, found, parts, (Handle **)(parts + count), gone);
    if (result == NULL)
        for (Py_ssize_t k = 0; k < count; k++)
            Py_DecRef(parts[k]);
    Py_DECREF((PyObject *)record);
    if (parts != held)
        PyMem_Free(parts);
    return result;
}

static PyObject *serve(Route *route, PyObject *args, PyObject *keywords, PyObject *gone,
                       int untracked)
{
    void *held[HELD], **words = held;
    Py_ssize_t n = route->leaves, count = route->registers + 3 * n;
    PyObject *result = NULL;
    Record *record;
    Leaves found;
    if (count > HELD && (words = PyMem_Malloc((size_t)count * sizeof *words)) == NULL)
        return NULL;
    found.registers = (PyObject **)words;
    found.arrays = found.registers + route->registers;
    found.handles = (Handle **)(found.arrays + n);
    found.numbers = (int64_t *)(found.handles + n);
    found.registers[0] = args;
    found.registers[1] = keywords;
    if (take_apart(route, &found, untracked)) {
        record = route->donates ? choose_for_donors(route, &found) : choose(route, &found);
        if (record != NULL)
            result = serve_record(record, &found, gone);
    }
    if (words != held)
        PyMem_Free(words);
    return result;
}

static PyObject *route_serve(Route *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *result;
    int collects;
    if (count != 3 && count != 4) {
        PyErr_SetString(PyExc_TypeError, "args, kwargs and what donated tensors get are needed");
        return NULL;
    }
    collects = PyGC_Disable();
    result = serve(self, args[0], args[1], args[2], count == 4 && args[3] == Py_True);
    if (collects)
        PyGC_Enable();
    if (result != NULL)
        return result;
    PyErr_Clear(); /* the long way fails again, if it has to */
    Py_IncRef(missed);
    return missed;
}

static PyMethodDef route_methods[] = {
    {"offer", (PyCFunction)route_offer, METH_O,
     "These CallRecords, in a tuple, are there from now on, and no others."},
    {"serve", (PyCFunction)(void (*)(void))route_serve, METH_FASTCALL,
     "The result of a call with args and kwargs, or MISSED; donated tensors have the third argument "
     "in the place of their array afterwards. With True as the fourth, gradients are off."},
    {NULL},
};

static PyType_Slot route_slots[] = {
    {Py_tp_doc, "Calls with arguments of one structure."},
    {Py_tp_new, route_new},
    {Py_tp_traverse, route_traverse},
    {Py_tp_clear, route_clear},
    {Py_tp_dealloc, route_dealloc},
    {Py_tp_methods, route_methods},
    {0, NULL},
};

static PyType_Spec route_spec = {
    "retrograd.accelerate._fast_call.CallRoute", sizeof(Route), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, route_slots,
};

/* -- the module --------------------------------------------------------------------------------- */

static PyObject *install(PyObject *module, PyObject *args)
{
    PyTypeObject *handles;
    PyObject *miss;
    long long *found;
    if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &handles, &miss))
        return NULL;
    if (!PyType_IsSubtype(handles, handle_base)) {
        PyErr_SetString(PyExc_TypeError, "a class of tensors is needed");
        return NULL;
    }
    found = PyCapsule_Import(EPOCH_CAPSULE, 0);
    if (found == NULL)
        return NULL;
    epoch = found;
    Py_INCREF((PyObject *)handles);
    Py_INCREF(miss);
    handle_class = handles;
    missed = miss;
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"install", install, METH_VARARGS, "Make tensors of this class; return that from missed calls."},
    {NULL},
};

static PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "retrograd.accelerate._fast_call",
    "Calls of compiled programs, from arguments to results.", -1, module_methods,
};

static PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *made = PyType_FromSpec(spec);
    if (made == NULL || PyModule_AddObjectRef(module, name, made) < 0)
        return NULL;
    return (PyTypeObject *)made;
}

PyMODINIT_FUNC PyInit__fast_call(void)
{
    PyObject *module, *tensors;
    import_array();
    tensors = PyImport_ImportModule("retrograd.accelerate._tensor");
    handle_base = tensors == NULL
                      ? NULL
                      : (PyTypeObject *)PyObject_GetAttrString(tensors, "HandleBase");
    Py_XDECREF(tensors);
    if (handle_base == NULL)
        return NULL;
    module = PyModule_Create(&module_definition);
    if (module != NULL && PyModule_AddStringConstant(module, "STAMP", RETROGRAD_STAMP) < 0)
        return NULL;
    if (module == NULL)
        return NULL;
    specs_type = add_type(module, "ArraySpecs", &specs_spec);
    record_type = add_type(module, "CallRecord", &record_spec);
    if (specs_type == NULL || record_type == NULL || add_type(module, "Entry", &entry_spec) == NULL
        || add_type(module, "CallRoute", &route_spec) == NULL) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
