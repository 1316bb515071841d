/* The recorder of scalars: a tape of rows, and `Value`, a handle on one.
 *
 * The same as `scalar/tape.py` and `scalar/recorder.py`, for what happens with every operation. All
 * else is Python: `native_recorder.py` has a subclass of `ScalarTape`, and operations on operands
 * that are not on one open tape go to `slow_path.record`. Rows lie in flat arrays from the start,
 * and nothing here is interrupted by another thread, so rows are never half written.
 *
 * A handle of an operation is not tracked by the cyclic collector, which would cost more than all
 * the rest, until something refers to it that could be part of a cycle (`_track`).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CONSTANT, LEAF, FOREIGN, CUSTOM };
enum { CODE, A, B, VALUES, GRADS, STAMPS, REACHED, FOUND, COMING, EPOCH, FIELDS };

typedef int64_t (*Machine)(void *, int64_t, int64_t, int64_t);

typedef struct Value Value;

/* A leaf as a traced function has it: the row that stands for it at the moment, and those of what
 * its number and its gradient were set to; 0 where there is none. */
typedef struct {
    Value *leaf;
    int64_t row, data, grad;
} Slot;

typedef struct {
    PyObject_HEAD
    int64_t table[FIELDS]; /* what the machine follows */
    uint8_t *code;
    int32_t *a, *b;
    double *values, *grads;
    int32_t *stamps, *reached;
    uint8_t *held;        /* how many handles a row has; 255 is many */
    int64_t rows, room, grad_room, done;
    int64_t live;         /* handles of operations */
    Value **leaves;       /* in the order of their rows, whose `a` is the position here */
    int64_t leaf_count, leaf_room;
    PyObject *constants;  /* rows by number */
    PyObject *trace;      /* or NULL */
    int64_t zero;         /* the row of the number 0, or 0 */
    int64_t serial;       /* of a tape that a function is traced on; else 0 */
    Slot *slots;
    int64_t slot_count, slot_room;
    char closed, waiting; /* waiting: there are rows of other tapes without a value */
} Tape;

/* What only leaves have, apart from the handle: graphs of millions of handles are bound by memory.
   */
typedef struct {
    double own_data, own_grad;
    double *data, *grad; /* these, or numbers in the arrays of `home` */
    PyObject *label, *home;
    int64_t serial, slot; /* where the trace of this number knows the leaf */
} Leaf;

struct Value {
    PyObject_HEAD
    Tape *tape; /* or NULL */
    int64_t row;
    Leaf *leaf; /* NULL of what was computed */
};

static PyTypeObject *TapeType, *ValueType;
static Machine machine;
static PyObject *load_machine, *record, *construct, *traces, *number_of, *evaluate;
static PyObject *unsettable;
static int64_t limit = 1 << 16;

#define FREE_VALUES 1024
static Value *free_values[FREE_VALUES];
static int free_count;

/* -- tapes ------------------------------------------------------------------------------------ */
static int grow(void **memory, int64_t from, int64_t to, size_t size) {
    void *bigger = PyMem_Realloc(*memory, (size_t)to * size);
    if (!bigger) {
        PyErr_NoMemory();
        return -1;
    }
    memset((char *)bigger + (size_t)from * size, 0, (size_t)(to - from) * size);
    *memory = bigger;
    return 0;
}

static int reserve(Tape *p, int64_t rows) {
    if (rows <= p->room)
        return 0;
    int64_t room = p->room ? p->room + p->room / 2 : 64;
    if (room < rows)
        room = rows;
    if (p->room < limit && room > limit)
        room = rows > limit ? rows : limit; /* to be asked there whether it goes on */
    if (grow((void **)&p->code, p->room, room, 1) || grow((void **)&p->a, p->room, room, 4) ||
        grow((void **)&p->b, p->room, room, 4) || grow((void **)&p->values, p->room, room, 8) ||
        grow((void **)&p->held, p->room, room, 1))
        return -1;
    p->room = room;
    p->table[CODE] = (int64_t)(intptr_t)p->code;
    p->table[A] = (int64_t)(intptr_t)p->a;
    p->table[B] = (int64_t)(intptr_t)p->b;
    p->table[VALUES] = (int64_t)(intptr_t)p->values;
    return 0;
}

static int reserve_grads(Tape *p) {
    if (p->rows <= p->grad_room)
        return 0;
    int64_t old = p->grad_room, new = p->rows;
    if (grow((void **)&p->grads, old, new, 8) || grow((void **)&p->stamps, old, new, 4) ||
        grow((void **)&p->reached, old ? old + 1 : 0, new + 1, 4))
        return -1;
    p->grad_room = new;
    p->table[GRADS] = (int64_t)(intptr_t)p->grads;
    p->table[STAMPS] = (int64_t)(intptr_t)p->stamps;
    p->table[REACHED] = (int64_t)(intptr_t)p->reached;
    return 0;
}

/* A new row; the tape is open and there is no need to ask. */
static int64_t put(Tape *p, int code, int64_t a, int64_t b) {
    int64_t i = p->rows;
    if (i >= p->room) {
        if (reserve(p, i + 1))
            return -1;
        if (i >= limit && !p->trace && p->live < i / 8) {
            /* Large, and few handles: nothing more than this row. */
            p->code[i] = (uint8_t)code;
            p->a[i] = (int32_t)a;
            p->b[i] = (int32_t)b;
            p->rows = i + 1;
            PyObject *done = PyObject_CallMethod((PyObject *)p, "close", NULL);
            if (!done)
                return -1;
            Py_DECREF(done);
            return i;
        }
    }
    p->code[i] = (uint8_t)code;
    p->a[i] = (int32_t)a;
    p->b[i] = (int32_t)b;
    p->rows = i + 1;
    return i;
}

static int64_t put_given(Tape *p, int code, double x) {
    int64_t i = put(p, code, 0, 0);
    if (i >= 0)
        p->values[i] = x;
    return i;
}

static int64_t number(Tape *p, PyObject *key, double x) {
    int cached = x != 0 || !signbit(x); /* as a key -0.0 would be 0.0 */
    if (cached) {
        PyObject *found = PyDict_GetItemWithError(p->constants, key);
        if (found)
            return PyLong_AsLongLong(found);
        if (PyErr_Occurred())
            return -1;
    }
    int64_t i = put_given(p, CONSTANT, x);
    if (cached && i >= 0) {
        PyObject *row = PyLong_FromLongLong(i);
        if (!row || PyDict_SetItem(p->constants, key, row)) {
            Py_XDECREF(row);
            return -1;
        }
        Py_DECREF(row);
        if (x == 0)
            p->zero = i;
    }
    return i;
}

/* -- tracing: one function at a time in a process, under the lock --------------------------------
   */
enum { GRADIENT = 102, START = 101, STOP = 103 }; /* as in `opcodes.py` */
static Tape *traced_tape;
static unsigned long tracer;
static int64_t serials;

/* The tape that this thread traces on, or NULL. */
static Tape *tracing(void) {
    return traced_tape && PyThread_get_thread_ident() == tracer ? traced_tape : NULL;
}

/* What the trace knows of a leaf. */
static Slot *slot_of(Tape *p, Value *x) {
    if (x->leaf->serial == p->serial)
        return p->slots + x->leaf->slot;
    if (p->slot_count == p->slot_room) {
        int64_t room = p->slot_room ? 2 * p->slot_room : 64;
        if (grow((void **)&p->slots, p->slot_room, room, sizeof(Slot)))
            return NULL;
        p->slot_room = room;
    }
    x->leaf->serial = p->serial;
    x->leaf->slot = p->slot_count;
    Slot *s = p->slots + p->slot_count++;
    Py_INCREF((PyObject *)x);
    s->leaf = x;
    s->row = s->data = s->grad = 0;
    return s;
}

/* An error, by the trace itself, if it is over. */
static int alive(Tape *p) {
    if (!p->closed)
        return 0;
    PyObject *done = PyObject_CallMethod(p->trace, "put", "i", 0);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* The row of a leaf as it is at the moment; `b` is the row that it was set to. */
static int64_t traced_attach(Tape *p, Value *x) {
    Slot *s = slot_of(p, x);
    if (!s || alive(p))
        return -1;
    if (!s->row)
        s->row = put(p, LEAF, s - p->slots, s->data);
    return s->row;
}

/* The row of its gradient; 0 if that is the number 0. */
static int64_t traced_grad(Tape *p, Value *x) {
    Slot *s = slot_of(p, x);
    if (!s || alive(p))
        return -1;
    if (!s->grad)
        s->grad = put(p, START, s - p->slots, 0);
    return s->grad == p->zero ? 0 : s->grad;
}

static int64_t attach(Tape *p, Value *x) {
    if (p->serial)
        return traced_attach(p, x);
    if (p->leaf_count == p->leaf_room) {
        int64_t room = p->leaf_room ? 2 * p->leaf_room : 16;
        if (grow((void **)&p->leaves, p->leaf_room, room, sizeof(Value *)))
            return -1;
        p->leaf_room = room;
    }
    int64_t at = p->leaf_count;
    Py_INCREF((PyObject *)x);
    p->leaves[p->leaf_count++] = x;
    int64_t i = put(p, LEAF, at, 0);
    if (i < 0)
        return -1;
    p->values[i] = *x->leaf->data;
    if (!x->leaf->home && !p->closed && PyList_Size(traces) == 0) {
        Tape *before = x->tape;
        Py_INCREF((PyObject *)p);
        x->tape = p;
        x->row = i;
        Py_XDECREF((PyObject *)before);
    }
    return i;
}

static int compute(Tape *p, int64_t i) {
    if (i < p->done)
        return 0;
    if (p->waiting) {
        PyObject *done = PyObject_CallFunction(evaluate, "OL", p, (long long)i);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    if (!machine) {
        PyObject *address = PyObject_CallFunction(load_machine, NULL);
        if (!address)
            return -1;
        machine = (Machine)PyLong_AsVoidPtr(address);
        Py_DECREF(address);
        if (!machine) {
            PyErr_SetString(PyExc_RuntimeError, "the native machine cannot be had");
            return -1;
        }
    }
    p->done = machine(p->table, p->done, i + 1, 0);
    return 0;
}

static int checked(Tape *p, int64_t i) {
    if (i >= 0 && i < p->rows)
        return 0;
    PyErr_Format(PyExc_IndexError, "the tape has no row %lld", (long long)i);
    return -1;
}

static PyObject *tape_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Tape *p = (Tape *)PyType_GenericAlloc(type, 0);
    if (!p)
        return NULL;
    p->constants = PyDict_New();
    /* Row 0 is nobody's, as in Python. */
    if (!p->constants || put(p, CONSTANT, 0, 0) < 0) {
        Py_DECREF((PyObject *)p);
        return NULL;
    }
    return (PyObject *)p;
}

static int tape_traverse(PyObject *self, visitproc visit, void *arg) {
    Tape *p = (Tape *)self;
    Py_VISIT((PyObject *)Py_TYPE(self));
    for (int64_t i = 0; i < p->leaf_count; i++)
        Py_VISIT((PyObject *)p->leaves[i]);
    for (int64_t i = 0; i < p->slot_count; i++)
        Py_VISIT((PyObject *)p->slots[i].leaf);
    Py_VISIT(p->constants);
    Py_VISIT(p->trace);
    return 0;
}

static int tape_clear(PyObject *self) {
    Tape *p = (Tape *)self;
    int64_t n = p->leaf_count;
    Value **leaves = p->leaves;
    p->leaf_count = p->leaf_room = 0;
    p->leaves = NULL;
    for (int64_t i = 0; i < n; i++)
        Py_DECREF((PyObject *)leaves[i]);
    PyMem_Free(leaves);
    n = p->slot_count;
    Slot *slots = p->slots;
    p->slot_count = p->slot_room = 0;
    p->slots = NULL;
    for (int64_t i = 0; i < n; i++)
        Py_DECREF((PyObject *)slots[i].leaf);
    PyMem_Free(slots);
    Py_CLEAR(p->constants);
    Py_CLEAR(p->trace);
    p->closed = 1;
    return 0;
}

static void tape_dealloc(PyObject *self) {
    Tape *p = (Tape *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    tape_clear(self);
    PyMem_Free(p->code);
    PyMem_Free(p->a);
    PyMem_Free(p->b);
    PyMem_Free(p->values);
    PyMem_Free(p->held);
    PyMem_Free(p->grads);
    PyMem_Free(p->stamps);
    PyMem_Free(p->reached);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *closed_error;

static PyObject *made(Tape *p, int64_t row);

static int is_open(Tape *p) {
    if (!p->closed)
        return 1;
    PyErr_SetNone(closed_error);
    return 0;
}

static PyObject *tape_put(PyObject *self, PyObject *args) {
    int code;
    long long a = 0, b = 0;
    if (!PyArg_ParseTuple(args, "i|LL", &code, &a, &b) || !is_open((Tape *)self))
        return NULL;
    Tape *p = (Tape *)self;
    if (!p->trace && code > CUSTOM && (checked(p, a) || checked(p, b)))
        return NULL;
    int64_t i = put(p, code, a, b);
    return i < 0 ? NULL : PyLong_FromLongLong(i);
}

static PyObject *tape_put_given(PyObject *self, PyObject *args) {
    int code;
    double x;
    if (!PyArg_ParseTuple(args, "id", &code, &x) || !is_open((Tape *)self))
        return NULL;
    int64_t i = put_given((Tape *)self, code, x);
    return i < 0 ? NULL : PyLong_FromLongLong(i);
}

static PyObject *tape_number(PyObject *self, PyObject *x) {
    if (!is_open((Tape *)self))
        return NULL;
    PyObject *key = PyNumber_Float(x);
    if (!key)
        return NULL;
    int64_t i = number((Tape *)self, key, PyFloat_AsDouble(key));
    Py_DECREF(key);
    return i < 0 ? NULL : PyLong_FromLongLong(i);
}

static PyObject *tape_attach(PyObject *self, PyObject *x) {
    if (!PyObject_TypeCheck(x, ValueType)) {
        PyErr_SetString(PyExc_TypeError, "a leaf is a Value of the same recorder");
        return NULL;
    }
    if (!is_open((Tape *)self))
        return NULL;
    int64_t i = attach((Tape *)self, (Value *)x);
    return i < 0 ? NULL : PyLong_FromLongLong(i);
}

static PyObject *tape_close(PyObject *self, PyObject *unused) {
    Tape *p = (Tape *)self;
    p->closed = 1;
    for (int64_t i = 0; i < p->leaf_count; i++)
        if (p->leaves[i]->tape == p) {
            p->leaves[i]->tape = NULL;
            Py_DECREF((PyObject *)p);
        }
    PyDict_Clear(p->constants);
    return PyLong_FromLongLong(p->rows);
}

static PyObject *tape_value(PyObject *self, PyObject *arg) {
    Tape *p = (Tape *)self;
    int64_t i = PyLong_AsLongLong(arg);
    if ((i == -1 && PyErr_Occurred()) || checked(p, i))
        return NULL;
    if (p->serial)
        return alive(p) ? NULL : made(p, put(p, STOP, i, 0));
    return compute(p, i) ? NULL : PyFloat_FromDouble(p->values[i]);
}

static PyObject *tape_set_value(PyObject *self, PyObject *args) {
    long long i;
    double x;
    if (!PyArg_ParseTuple(args, "Ld", &i, &x) || checked((Tape *)self, i))
        return NULL;
    ((Tape *)self)->values[i] = x;
    Py_RETURN_NONE;
}

static PyObject *tape_set_code(PyObject *self, PyObject *args) {
    long long i;
    int code;
    if (!PyArg_ParseTuple(args, "Li", &i, &code) || checked((Tape *)self, i))
        return NULL;
    ((Tape *)self)->code[i] = (uint8_t)code;
    Py_RETURN_NONE;
}

static PyObject *tape_row(PyObject *self, PyObject *arg) {
    Tape *p = (Tape *)self;
    int64_t i = PyLong_AsLongLong(arg);
    if ((i == -1 && PyErr_Occurred()) || checked(p, i))
        return NULL;
    int given = p->code[i] == LEAF;
    return Py_BuildValue("iii", p->code[i], given ? 0 : p->a[i], given ? 0 : p->b[i]);
}

static PyObject *tape_grad(PyObject *self, PyObject *arg) {
    Tape *p = (Tape *)self;
    int64_t i = PyLong_AsLongLong(arg);
    if ((i == -1 && PyErr_Occurred()) || checked(p, i))
        return NULL;
    if (p->trace)
        return PyObject_CallMethod(p->trace, "grad", "L", (long long)i);
    return PyFloat_FromDouble(i < p->grad_room ? p->grads[i] : 0.0);
}

static PyObject *tape_set_grad(PyObject *self, PyObject *args) {
    Tape *p = (Tape *)self;
    long long i;
    double g;
    if (!PyArg_ParseTuple(args, "Ld", &i, &g) || checked(p, i))
        return NULL;
    if (p->trace)
        return PyObject_CallMethod(p->trace, "set_grad", "Ld", i, g);
    if (reserve_grads(p))
        return NULL;
    p->grads[i] = g;
    Py_RETURN_NONE;
}

static PyObject *tape_begin(PyObject *self, PyObject *unused) {
    Tape *p = (Tape *)self;
    if (reserve_grads(p))
        return NULL;
    p->table[EPOCH]++;
    p->table[FOUND] = p->table[COMING] = 0;
    Py_RETURN_NONE;
}

static PyObject *tape_seed(PyObject *self, PyObject *args) {
    Tape *p = (Tape *)self;
    long long i;
    double g;
    if (!PyArg_ParseTuple(args, "Ld", &i, &g) || checked(p, i) || reserve_grads(p))
        return NULL;
    if (p->stamps[i] == (int32_t)p->table[EPOCH]) {
        p->grads[i] += g;
        Py_RETURN_NONE;
    }
    p->stamps[i] = (int32_t)p->table[EPOCH];
    p->grads[i] = g;
    if (p->code[i] < CUSTOM)
        p->reached[p->table[FOUND]++] = (int32_t)i;
    else
        p->table[COMING]++;
    Py_RETURN_NONE;
}

static PyObject *tape_back(PyObject *self, PyObject *args) {
    Tape *p = (Tape *)self;
    long long start, end;
    if (!PyArg_ParseTuple(args, "LL", &start, &end) || compute(p, start < 0 ? 0 : start))
        return NULL;
    if (start < 0 || start >= p->rows)
        return PyBool_FromLong(p->table[COMING] > 0);
    return PyBool_FromLong(machine(p->table, start, end, 1) > 0);
}

static PyObject *tape_visited(PyObject *self, PyObject *arg) {
    Tape *p = (Tape *)self;
    int64_t i = PyLong_AsLongLong(arg);
    if ((i == -1 && PyErr_Occurred()) || checked(p, i))
        return NULL;
    if (i >= p->grad_room || p->stamps[i] != (int32_t)p->table[EPOCH])
        Py_RETURN_FALSE;
    p->table[COMING]--;
    Py_RETURN_TRUE;
}

/* Rows that were reached and their cotangents; with `add` those of leaves are added to them
 * instead. */
static PyObject *reached(Tape *p, int add) {
    PyObject *found = PyList_New(0);
    for (int64_t k = 0; found && k < p->table[FOUND]; k++) {
        int32_t i = p->reached[k];
        if (add && p->code[i] == LEAF) {
            *p->leaves[p->a[i]]->leaf->grad += p->grads[i];
            continue;
        }
        if (add && p->code[i] != FOREIGN)
            continue;
        PyObject *pair = Py_BuildValue("id", i, p->grads[i]);
        if (!pair || PyList_Append(found, pair))
            Py_CLEAR(found);
        Py_XDECREF(pair);
    }
    return found;
}

static PyObject *tape_reached(PyObject *self, PyObject *unused) { return reached((Tape *)self, 0); }

static PyObject *tape_collect(PyObject *self, PyObject *unused) { return reached((Tape *)self, 1); }

static PyObject *tape_clear_grads(PyObject *self, PyObject *unused) {
    Tape *p = (Tape *)self;
    for (int64_t i = 0; i < p->grad_room; i++)
        if (p->stamps[i] == (int32_t)p->table[EPOCH])
            p->grads[i] = 0;
    Py_RETURN_NONE;
}

static PyObject *tape_saved(PyObject *self, PyObject *unused) {
    Tape *p = (Tape *)self;
    return PyBytes_FromStringAndSize((char *)p->grads, (Py_ssize_t)(8 * p->grad_room));
}

static PyObject *tape_restore(PyObject *self, PyObject *bytes) {
    Tape *p = (Tape *)self;
    char *from;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &from, &size))
        return NULL;
    if (size > 8 * p->grad_room)
        size = (Py_ssize_t)(8 * p->grad_room);
    if (p->grads) {
        memset(p->grads, 0, (size_t)(8 * p->grad_room));
        memcpy(p->grads, from, (size_t)size);
    }
    Py_RETURN_NONE;
}

static PyObject *tape_held(PyObject *self, PyObject *unused) {
    Tape *p = (Tape *)self;
    PyObject *found = PySet_New(NULL);
    for (int64_t i = 0; found && i < p->rows; i++)
        if (p->held[i]) {
            PyObject *row = PyLong_FromLongLong(i);
            if (!row || PySet_Add(found, row))
                Py_CLEAR(found);
            Py_XDECREF(row);
        }
    return found;
}

static PyObject *tape_leaf(PyObject *self, PyObject *arg) {
    Tape *p = (Tape *)self;
    int64_t i = PyLong_AsLongLong(arg);
    if ((i == -1 && PyErr_Occurred()) || checked(p, i))
        return NULL;
    if (p->code[i] != LEAF || p->a[i] >= (p->serial ? p->slot_count : p->leaf_count)) {
        PyErr_SetObject(PyExc_KeyError, arg);
        return NULL;
    }
    PyObject *x = (PyObject *)(p->serial ? p->slots[p->a[i]].leaf : p->leaves[p->a[i]]);
    Py_INCREF(x);
    return x;
}

static PyObject *tape_memory(PyObject *self, PyObject *unused) {
    Tape *p = (Tape *)self;
    Py_ssize_t n = (Py_ssize_t)p->rows;
    return Py_BuildValue("y#y#y#y#", (char *)p->code, n, (char *)p->a, 4 * n, (char *)p->b, 4 * n,
                         (char *)p->values, 8 * n);
}

static PyObject *tape_compute(PyObject *self, PyObject *arg) {
    int64_t i = PyLong_AsLongLong(arg);
    if ((i == -1 && PyErr_Occurred()) || compute((Tape *)self, i))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *tape_trace_begin(PyObject *self, PyObject *unused) {
    traced_tape = (Tape *)self;
    tracer = PyThread_get_thread_ident();
    traced_tape->serial = ++serials;
    Py_RETURN_NONE;
}

static PyObject *tape_trace_end(PyObject *self, PyObject *unused) {
    if (traced_tape == (Tape *)self)
        traced_tape = NULL;
    Py_RETURN_NONE;
}

/* Add a part of a gradient to what a leaf has. */
static int gather_part(Tape *p, Value *x, int64_t row, int64_t number_, int add) {
    int64_t total = traced_grad(p, x);
    int64_t part = total < 0 ? -1 : put(p, GRADIENT, row, number_);
    if (part >= 0 && total)
        part = put(p, add, total, part);
    if (part < 0)
        return -1;
    slot_of(p, x)->grad = part;
    return 0;
}

/* _trace_back(root, number, paths, add): `paths` are how many operands of an opcode the way goes
 * on to. Leaves come in the order of their first rows, the rows of each in theirs. */
static PyObject *tape_trace_back(PyObject *self, PyObject *args) {
    Tape *p = (Tape *)self;
    long long root, number_;
    const char *paths;
    Py_ssize_t size;
    int add;
    if (!PyArg_ParseTuple(args, "LLy#i", &root, &number_, &paths, &size, &add) ||
        checked(p, root) || size != 256)
        return NULL;
    uint8_t *seen = PyMem_Calloc((size_t)root + 1, 1);
    /* For each leaf the last of its rows so far, for each of these the one before. */
    int32_t *first = PyMem_Calloc((size_t)p->slot_count + 1, 4);
    int32_t *next = PyMem_Calloc((size_t)root + 1, 4);
    int failed = !seen || !first || !next;
    for (int64_t i = root; !failed && i >= 0; i--) {
        if (i == root)
            seen[i] = 1;
        if (!seen[i])
            continue;
        if (paths[p->code[i]] > 0)
            seen[p->a[i]] = 1;
        if (paths[p->code[i]] > 1)
            seen[p->b[i]] = 1;
        if (p->code[i] == LEAF) {
            next[i] = first[p->a[i]];
            first[p->a[i]] = (int32_t)i;
        }
    }
    for (int64_t i = 0; !failed && i <= root; i++)
        if (seen[i] && p->code[i] == LEAF && first[p->a[i]] == i)
            for (int64_t k = i; !failed && k; k = next[k])
                failed = gather_part(p, p->slots[p->a[i]].leaf, k, number_, add);
    PyMem_Free(seen);
    PyMem_Free(first);
    PyMem_Free(next);
    if (failed)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* The leaves, and as bytes the rows of what their numbers and gradients were set to. */
static PyObject *tape_trace_leaves(PyObject *self, PyObject *unused) {
    Tape *p = (Tape *)self;
    Py_ssize_t n = (Py_ssize_t)p->slot_count;
    PyObject *leaves = PyList_New(n), *rows[2] = {NULL, NULL};
    for (int field = 0; field < 2; field++)
        rows[field] = PyBytes_FromStringAndSize(NULL, 8 * n);
    if (!leaves || !rows[0] || !rows[1]) {
        Py_XDECREF(leaves);
        Py_XDECREF(rows[0]);
        Py_XDECREF(rows[1]);
        return NULL;
    }
    for (Py_ssize_t k = 0; k < n; k++) {
        Py_INCREF((PyObject *)p->slots[k].leaf);
        PyList_SetItem(leaves, k, (PyObject *)p->slots[k].leaf);
        ((int64_t *)PyBytes_AsString(rows[0]))[k] = p->slots[k].data;
        ((int64_t *)PyBytes_AsString(rows[1]))[k] = p->slots[k].grad;
    }
    return Py_BuildValue("NNN", leaves, rows[0], rows[1]);
}

/* The leaves, by number, that nobody but the trace refers to. */
static PyObject *tape_trace_fresh(PyObject *self, PyObject *unused) {
    Tape *p = (Tape *)self;
    PyObject *found = PyList_New(0);
    for (int64_t k = 0; found && k < p->slot_count; k++)
        if (Py_REFCNT((PyObject *)p->slots[k].leaf) == 1) {
            PyObject *number_ = PyLong_FromLongLong(k);
            if (!number_ || PyList_Append(found, number_))
                Py_CLEAR(found);
            Py_XDECREF(number_);
        }
    return found;
}

/* The addresses of the numbers and gradients of leaves, as bytes; the numbers of those that have no
 * home; and the homes. */
static PyObject *tape_trace_homes(PyObject *self, PyObject *unused) {
    Tape *p = (Tape *)self;
    Py_ssize_t n = (Py_ssize_t)p->slot_count;
    PyObject *data = PyBytes_FromStringAndSize(NULL, 8 * n);
    PyObject *grads = PyBytes_FromStringAndSize(NULL, 8 * n);
    PyObject *homeless = PyList_New(0), *homes = PyList_New(0), *last = NULL;
    int failed = !data || !grads || !homeless || !homes;
    for (Py_ssize_t k = 0; k < n && !failed; k++) {
        Leaf *leaf = p->slots[k].leaf->leaf;
        ((int64_t *)PyBytes_AsString(data))[k] = (int64_t)(intptr_t)leaf->data;
        ((int64_t *)PyBytes_AsString(grads))[k] = (int64_t)(intptr_t)leaf->grad;
        if (!leaf->home) {
            PyObject *number_ = PyLong_FromSsize_t(k);
            failed = !number_ || PyList_Append(homeless, number_);
            Py_XDECREF(number_);
        } else if (leaf->home != last) {
            last = leaf->home;
            failed = PyList_Append(homes, last);
        }
    }
    if (!failed)
        return Py_BuildValue("NNNN", data, grads, homeless, homes);
    Py_XDECREF(data);
    Py_XDECREF(grads);
    Py_XDECREF(homeless);
    Py_XDECREF(homes);
    return NULL;
}

static PyMethodDef tape_methods[] = {
    {"put", tape_put, METH_VARARGS, "A new row of an opcode and two operands."},
    {"_put_given", tape_put_given, METH_VARARGS, "A new row with a value."},
    {"number", tape_number, METH_O, "The row of a constant."},
    {"attach", tape_attach, METH_O, "The row of a leaf."},
    {"_close", tape_close, METH_NOARGS, "Take no more rows; returns how many there are."},
    {"value", tape_value, METH_O, "The value of a row."},
    {"_set_value", tape_set_value, METH_VARARGS, "Give a row a value."},
    {"_set_code", tape_set_code, METH_VARARGS, "Make a row another kind of row."},
    {"row", tape_row, METH_O, "The opcode and the operands of a row."},
    {"grad", tape_grad, METH_O, "The gradient of a row."},
    {"set_grad", tape_set_grad, METH_VARARGS, "Set the gradient of a row."},
    {"begin", tape_begin, METH_NOARGS, "Before a backward pass."},
    {"seed", tape_seed, METH_VARARGS, "Add to the cotangent of a row."},
    {"back", tape_back, METH_VARARGS, "Go back from a row to another."},
    {"visited", tape_visited, METH_O, "Whether a row has a cotangent; it counts as done then."},
    {"reached", tape_reached, METH_NOARGS, "The given rows that the pass has come to."},
    {"_collect", tape_collect, METH_NOARGS, "Add to leaves; what came to other tapes."},
    {"clear", tape_clear_grads, METH_NOARGS, "Make the gradient of all that was reached zero."},
    {"_saved", tape_saved, METH_NOARGS, "All gradients."},
    {"_restore", tape_restore, METH_O, "Put them back."},
    {"_held", tape_held, METH_NOARGS, "The rows that have handles."},
    {"_trace_begin", tape_trace_begin, METH_NOARGS, "This thread traces a function on the tape."},
    {"_trace_end", tape_trace_end, METH_NOARGS, "It does so no more."},
    {"_trace_back", tape_trace_back, METH_VARARGS, "Write down what a way back brings leaves."},
    {"_trace_fresh", tape_trace_fresh, METH_NOARGS, "Leaves that only the trace refers to."},
    {"_trace_homes", tape_trace_homes, METH_NOARGS, "Where the numbers of leaves lie."},
    {"_trace_leaves", tape_trace_leaves, METH_NOARGS, "Leaves, and the rows they end with."},
    {"_leaf", tape_leaf, METH_O, "The leaf of a row."},
    {"_memory", tape_memory, METH_NOARGS, "Opcodes, operands and values, as bytes."},
    {"_compute", tape_compute, METH_O, "Compute the values up to a row."},
    {NULL, NULL, 0, NULL},
};

static PyObject *tape_get_trace(PyObject *self, void *unused) {
    PyObject *trace = ((Tape *)self)->trace;
    trace = trace ? trace : Py_None;
    Py_INCREF(trace);
    return trace;
}

static int tape_set_trace(PyObject *self, PyObject *trace, void *unused) {
    PyObject *before = ((Tape *)self)->trace;
    Py_XINCREF(trace);
    ((Tape *)self)->trace = trace;
    Py_XDECREF(before);
    return 0;
}

static PyGetSetDef tape_getset[] = {
    {"trace", tape_get_trace, tape_set_trace, "What is asked instead of the rows, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef tape_members[] = {
    {"done", T_LONGLONG, offsetof(Tape, done), READONLY, "Rows whose value is known."},
    {"rows", T_LONGLONG, offsetof(Tape, rows), READONLY, "How many rows there are."},
    {"_waiting", T_BOOL, offsetof(Tape, waiting), 0, "Rows of other tapes have no value yet."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot tape_slots[] = {
    {Py_tp_new, tape_new},         {Py_tp_dealloc, tape_dealloc}, {Py_tp_traverse, tape_traverse},
    {Py_tp_clear, tape_clear},     {Py_tp_methods, tape_methods}, {Py_tp_getset, tape_getset},
    {Py_tp_members, tape_members}, {0, NULL},
};

static PyType_Spec tape_spec = {
    "retrograd.accelerate._value.Tape", sizeof(Tape), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, tape_slots,
};

/* -- values ------------------------------------------------------------------------------------ */
static PyObject *made(Tape *p, int64_t row) {
    if (row < 0)
        return NULL;
    Value *v;
    if (free_count) {
        v = free_values[--free_count];
        PyObject_Init((PyObject *)v, ValueType);
    } else {
        v = PyObject_GC_New(Value, ValueType);
        if (!v)
            return NULL;
    }
    Py_INCREF((PyObject *)p);
    v->tape = p;
    v->row = row;
    v->leaf = NULL;
    p->live++;
    if (p->held[row] != 255)
        p->held[row]++;
    return (PyObject *)v;
}

static void leave_tape(Value *v) {
    Tape *p = v->tape;
    if (!p)
        return;
    v->tape = NULL;
    if (!v->leaf) {
        p->live--;
        if (p->held && p->held[v->row] != 255)
            p->held[v->row]--;
    }
    Py_DECREF((PyObject *)p);
}

static int value_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT((PyObject *)Py_TYPE(self));
    Py_VISIT((PyObject *)((Value *)self)->tape);
    if (((Value *)self)->leaf)
        Py_VISIT(((Value *)self)->leaf->home);
    return 0;
}

static void free_leaf(Value *v) {
    Leaf *leaf = v->leaf;
    v->leaf = NULL;
    if (leaf) {
        Py_XDECREF(leaf->label);
        Py_XDECREF(leaf->home);
        PyMem_Free(leaf);
    }
}

/* Become a leaf, whatever it was. */
static void leave_tape(Value *v);
static int be_leaf(Value *v, double number_) {
    Leaf *leaf = PyMem_Calloc(1, sizeof(Leaf));
    if (!leaf) {
        PyErr_NoMemory();
        return -1;
    }
    leave_tape(v);
    free_leaf(v);
    leaf->own_data = number_;
    leaf->data = &leaf->own_data;
    leaf->grad = &leaf->own_grad;
    v->leaf = leaf;
    return 0;
}

static int value_clear(PyObject *self) {
    Value *v = (Value *)self;
    leave_tape(v);
    if (v->leaf && v->leaf->home) {
        v->leaf->own_data = *v->leaf->data;
        v->leaf->own_grad = *v->leaf->grad;
        v->leaf->data = &v->leaf->own_data;
        v->leaf->grad = &v->leaf->own_grad;
        Py_CLEAR(v->leaf->home);
    }
    return 0;
}

static void value_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    leave_tape((Value *)self);
    free_leaf((Value *)self);
    if (type == ValueType && free_count < FREE_VALUES) {
        free_values[free_count++] = (Value *)self;
    } else {
        freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
        release(self);
    }
    Py_DECREF((PyObject *)type);
}

static int value_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    Value *v = (Value *)self;
    if (!kwargs && PyTuple_Size(args) == 1) {
        PyObject *x = PyTuple_GetItem(args, 0);
        if (PyFloat_CheckExact(x) || PyLong_CheckExact(x)) {
            double number = PyFloat_CheckExact(x) ? PyFloat_AsDouble(x) : PyLong_AsDouble(x);
            if (number == -1 && PyErr_Occurred())
                return -1;
            return be_leaf(v, number);
        }
    }
    PyObject *prepend = PyTuple_New(1 + PyTuple_Size(args));
    if (!prepend)
        return -1;
    Py_INCREF(self);
    PyTuple_SetItem(prepend, 0, self);
    for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++) {
        PyObject *x = PyTuple_GetItem(args, i);
        Py_INCREF(x);
        PyTuple_SetItem(prepend, i + 1, x);
    }
    PyObject *done = PyObject_Call(construct, prepend, kwargs);
    Py_DECREF(prepend);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *value_set_leaf(PyObject *self, PyObject *args) {
    Value *v = (Value *)self;
    double x;
    PyObject *label;
    if (!PyArg_ParseTuple(args, "dU", &x, &label))
        return NULL;
    if (be_leaf(v, x))
        return NULL;
    Py_INCREF(label);
    v->leaf->label = label;
    Py_RETURN_NONE;
}

static PyObject *value_set_row(PyObject *self, PyObject *args) {
    Value *v = (Value *)self;
    PyObject *tape;
    long long row;
    if (!PyArg_ParseTuple(args, "O!L", TapeType, &tape, &row) || checked((Tape *)tape, row))
        return NULL;
    leave_tape(v);
    free_leaf(v);
    Py_INCREF(tape);
    v->tape = (Tape *)tape;
    v->row = row;
    v->tape->live++;
    if (v->tape->held[row] != 255)
        v->tape->held[row]++;
    Py_RETURN_NONE;
}

/* `x` as an operand on tape `p`: -2 where that is not known here. */
static int64_t operand(Tape *p, PyObject *x) {
    if (Py_TYPE(x) == ValueType) {
        Value *v = (Value *)x;
        if (v->tape == p)
            return v->row;
        return v->leaf ? attach(p, v) : -2;
    }
    if (PyFloat_CheckExact(x))
        return number(p, x, PyFloat_AsDouble(x));
    if (PyLong_CheckExact(x)) {
        double number_ = PyLong_AsDouble(x);
        if (number_ == -1 && PyErr_Occurred())
            return -1;
        return number(p, x, number_);
    }
    return -2;
}

/* The open tape that operands are on: that of one that was computed, else one a leaf is on. */
static Tape *tape_of(PyObject *x, PyObject *y) {
    Tape *p = NULL;
    PyObject *each[2] = {x, y};
    for (int k = 0; k < 2; k++) {
        if (!each[k] || Py_TYPE(each[k]) != ValueType)
            continue;
        Value *v = (Value *)each[k];
        if (!v->tape || v->tape->closed)
            continue;
        if (!v->leaf)
            return v->tape;
        p = v->tape;
    }
    return p ? p : tracing();
}

static PyObject *slowly(int code, PyObject *x, PyObject *y) {
    return y ? PyObject_CallFunction(record, "OiOO", ValueType, code, x, y)
             : PyObject_CallFunction(record, "OiO", ValueType, code, x);
}

static PyObject *operate(int code, PyObject *x, PyObject *y) {
    Tape *p = tape_of(x, y);
    if (!p)
        return slowly(code, x, y);
    /* Operands are rows of a tape that another operand may fill and close; then it goes on
     * slowly, and a row too many does not matter. */
    Py_INCREF((PyObject *)p);
    PyObject *result = NULL;
    int64_t a = operand(p, x), b = 0;
    if (a >= 0 && y)
        b = operand(p, y);
    if (a == -1 || b == -1)
        result = NULL;
    else if (a == -2 || b == -2 || p->closed)
        result = slowly(code, x, y);
    else
        result = made(p, put(p, code, a, b));
    Py_DECREF((PyObject *)p);
    return result;
}

static int codes[32]; /* in the order of METHODS */
enum { ADD, SUB, MUL, DIV, POW, POWC, NEG, ABS, RELU, TANH, EXP, LOG, SIGMOID, SIN, COS, SQRT };

static PyObject *value_add(PyObject *x, PyObject *y) { return operate(codes[ADD], x, y); }
static PyObject *value_sub(PyObject *x, PyObject *y) { return operate(codes[SUB], x, y); }
static PyObject *value_mul(PyObject *x, PyObject *y) { return operate(codes[MUL], x, y); }
static PyObject *value_div(PyObject *x, PyObject *y) { return operate(codes[DIV], x, y); }
static PyObject *value_neg(PyObject *x) { return operate(codes[NEG], x, NULL); }
static PyObject *value_abs(PyObject *x) { return operate(codes[ABS], x, NULL); }

static PyObject *value_pow(PyObject *x, PyObject *y, PyObject *modulus) {
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    return operate(codes[PyObject_TypeCheck(y, ValueType) ? POW : POWC], x, y);
}

#define METHOD(name, op) \
    static PyObject *value_##name(PyObject *x, PyObject *u) { return operate(codes[op], x, NULL); }
METHOD(relu, RELU)
METHOD(tanh, TANH)
METHOD(exp, EXP)
METHOD(log, LOG)
METHOD(sigmoid, SIGMOID)
METHOD(sin, SIN)
METHOD(cos, COS)
METHOD(sqrt, SQRT)
METHOD(absolute, ABS)

static PyObject *value_get_data(PyObject *self, void *unused) {
    Value *v = (Value *)self;
    if (!v->leaf) {
        Tape *p = v->tape;
        if (!p) {
            PyErr_SetString(PyExc_AttributeError, "a Value that was not made yet has no data");
            return NULL;
        }
        if (v->row < p->done)
            return PyFloat_FromDouble(p->values[v->row]);
        PyObject *row = PyLong_FromLongLong(v->row);
        PyObject *found = row ? tape_value((PyObject *)p, row) : NULL;
        Py_XDECREF(row);
        return found;
    }
    Tape *p = tracing();
    if (!p)
        return PyFloat_FromDouble(*v->leaf->data);
    int64_t row = traced_attach(p, v);
    return row < 0 ? NULL : made(p, put(p, STOP, row, 0));
}

static int as_number(PyObject *x, double *number_) {
    if (PyFloat_CheckExact(x)) {
        *number_ = PyFloat_AsDouble(x);
        return 0;
    }
    PyObject *found = PyObject_CallFunction(number_of, "O", x);
    if (!found)
        return -1;
    *number_ = PyFloat_AsDouble(found);
    Py_DECREF(found);
    return 0;
}

/* The row of a number or of what is traced. */
static int64_t row_of(Tape *p, PyObject *x) {
    if (PyObject_TypeCheck(x, ValueType) && ((Value *)x)->tape == p && !((Value *)x)->leaf)
        return ((Value *)x)->row;
    double number_;
    if (alive(p) || as_number(x, &number_))
        return -1;
    PyObject *key = PyFloat_FromDouble(number_);
    int64_t row = key ? number(p, key, number_) : -1;
    Py_XDECREF(key);
    return row;
}

static int value_set_data(PyObject *self, PyObject *x, void *unused) {
    Value *v = (Value *)self;
    if (!x) {
        PyErr_SetString(PyExc_AttributeError, "the data of a Value cannot be deleted");
        return -1;
    }
    if (!v->leaf) {
        PyObject *never = PyObject_CallFunction(unsettable, "O", self);
        Py_XDECREF(never);
        return -1;
    }
    Tape *p = tracing();
    if (p) {
        int64_t row = row_of(p, x);
        Slot *s = row < 0 ? NULL : slot_of(p, v);
        if (!s)
            return -1;
        s->data = row;
        s->row = 0;
        return 0;
    }
    double number_;
    if (as_number(x, &number_))
        return -1;
    *v->leaf->data = number_;
    if (!v->leaf->home)
        leave_tape(v);
    return 0;
}

static PyObject *value_get_grad(PyObject *self, void *unused) {
    Value *v = (Value *)self;
    if (!v->leaf) {
        if (!v->tape) {
            PyErr_SetString(PyExc_AttributeError, "a Value that was not made yet has no gradient");
            return NULL;
        }
        PyObject *row = PyLong_FromLongLong(v->row);
        PyObject *found = row && v->tape ? tape_grad((PyObject *)v->tape, row) : NULL;
        Py_XDECREF(row);
        return found;
    }
    Tape *p = tracing();
    if (!p)
        return PyFloat_FromDouble(*v->leaf->grad);
    int64_t row = traced_grad(p, v);
    return row < 0 ? NULL : row ? made(p, row) : PyFloat_FromDouble(0.0);
}

static int value_set_grad(PyObject *self, PyObject *x, void *unused) {
    Value *v = (Value *)self;
    if (!x) {
        PyErr_SetString(PyExc_AttributeError, "the gradient of a Value cannot be deleted");
        return -1;
    }
    Tape *p = v->leaf ? tracing() : NULL;
    if (p) {
        int64_t row = row_of(p, x);
        Slot *s = row < 0 ? NULL : slot_of(p, v);
        if (!s)
            return -1;
        s->grad = row;
        return 0;
    }
    double g;
    if (as_number(x, &g))
        return -1;
    if (v->leaf) {
        *v->leaf->grad = g;
        return 0;
    }
    PyObject *args = Py_BuildValue("Ld", (long long)v->row, g);
    PyObject *done = args && v->tape ? tape_set_grad((PyObject *)v->tape, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *value_get_tape(PyObject *self, void *unused) {
    PyObject *tape = (PyObject *)((Value *)self)->tape;
    tape = tape ? tape : Py_None;
    Py_INCREF(tape);
    return tape;
}

static PyObject *value_get_leaf(PyObject *self, void *unused) {
    return PyBool_FromLong(((Value *)self)->leaf != NULL);
}

static PyObject *value_get_label(PyObject *self, void *unused) {
    Leaf *leaf = ((Value *)self)->leaf;
    if (!leaf || !leaf->label)
        return PyUnicode_FromString("");
    Py_INCREF(leaf->label);
    return leaf->label;
}

static int value_set_label(PyObject *self, PyObject *label, void *unused) {
    Leaf *leaf = ((Value *)self)->leaf;
    if (!leaf) {
        PyErr_SetString(PyExc_AttributeError, "not a leaf");
        return -1;
    }
    PyObject *before = leaf->label;
    Py_XINCREF(label);
    leaf->label = label;
    Py_XDECREF(before);
    return 0;
}

static PyObject *value_get_home(PyObject *self, void *unused) {
    Leaf *leaf = ((Value *)self)->leaf;
    PyObject *home = leaf && leaf->home ? leaf->home : Py_None;
    Py_INCREF(home);
    return home;
}

static PyObject *value_move(PyObject *self, PyObject *args) {
    Value *v = (Value *)self;
    PyObject *home;
    long long row;
    if (!PyArg_ParseTuple(args, "OL", &home, &row))
        return NULL;
    if (!v->leaf) {
        PyErr_SetString(PyExc_TypeError, "only leaves have a number of their own");
        return NULL;
    }
    PyObject *addresses = PyObject_CallMethod(home, "addresses", NULL);
    if (!addresses)
        return NULL;
    double *data = (double *)PyLong_AsVoidPtr(PyTuple_GetItem(addresses, 0)) + row;
    double *grads = (double *)PyLong_AsVoidPtr(PyTuple_GetItem(addresses, 1)) + row;
    Py_DECREF(addresses);
    if (PyErr_Occurred())
        return NULL;
    *data = *v->leaf->data;
    *grads = *v->leaf->grad;
    Py_INCREF(home);
    Py_XDECREF(v->leaf->home);
    v->leaf->home = home;
    v->leaf->data = data;
    v->leaf->grad = grads;
    leave_tape(v);
    v->row = row;
    Py_RETURN_NONE;
}

static PyObject *value_track(PyObject *self, PyObject *unused) {
    if (!PyObject_GC_IsTracked(self))
        PyObject_GC_Track(self);
    Py_RETURN_NONE;
}

static PyObject *value_made(PyObject *unused, PyObject *args) {
    PyObject *tape;
    long long row;
    if (!PyArg_ParseTuple(args, "O!L", TapeType, &tape, &row) || checked((Tape *)tape, row))
        return NULL;
    return made((Tape *)tape, row);
}

static PyMethodDef value_methods[] = {
    {"relu", value_relu, METH_NOARGS, "relu of this value."},
    {"tanh", value_tanh, METH_NOARGS, "tanh of this value."},
    {"exp", value_exp, METH_NOARGS, "exp of this value."},
    {"log", value_log, METH_NOARGS, "log of this value."},
    {"sigmoid", value_sigmoid, METH_NOARGS, "sigmoid of this value."},
    {"sin", value_sin, METH_NOARGS, "sin of this value."},
    {"cos", value_cos, METH_NOARGS, "cos of this value."},
    {"sqrt", value_sqrt, METH_NOARGS, "sqrt of this value."},
    {"abs", value_absolute, METH_NOARGS, "abs of this value."},
    {"_set_leaf", value_set_leaf, METH_VARARGS, "Become a leaf."},
    {"_set_row", value_set_row, METH_VARARGS, "Become a handle on a row."},
    {"_move", value_move, METH_VARARGS, "Let the number live in arrays from now on."},
    {"_track", value_track, METH_NOARGS, "Be known to the cyclic collector."},
    {"_made", value_made, METH_VARARGS | METH_STATIC, "A handle on a row."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef value_getset[] = {
    {"data", value_get_data, value_set_data,
     "The number. It can be set on leaves; what was computed before keeps the old one.", NULL},
    {"grad", value_get_grad, value_set_grad,
     "The gradient of what `backward()` was called on, by this value.", NULL},
    {"_tape", value_get_tape, NULL, NULL, NULL},
    {"_is_leaf", value_get_leaf, NULL, NULL, NULL},
    {"_label", value_get_label, value_set_label, NULL, NULL},
    {"_home", value_get_home, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef value_members[] = {
    {"_row", T_LONGLONG, offsetof(Value, row), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot value_slots[] = {
    {Py_tp_init, value_init},
    {Py_tp_dealloc, value_dealloc},
    {Py_tp_traverse, value_traverse},
    {Py_tp_clear, value_clear},
    {Py_tp_methods, value_methods},
    {Py_tp_getset, value_getset},
    {Py_tp_members, value_members},
    {Py_nb_add, value_add},
    {Py_nb_subtract, value_sub},
    {Py_nb_multiply, value_mul},
    {Py_nb_true_divide, value_div},
    {Py_nb_power, value_pow},
    {Py_nb_negative, value_neg},
    {Py_nb_absolute, value_abs},
    {0, NULL},
};

static PyType_Spec value_spec = {
    "retrograd.Value", sizeof(Value), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, value_slots,
};

/* make(base, names, functions): the class, with a base that has all the rest. `names` are the
 * opcodes in the order of the enumeration above. */
static PyObject *make(PyObject *module, PyObject *args) {
    PyObject *base, *numbers;
    if (!PyArg_ParseTuple(args, "OO!OOOOOOOO", &base, &PyTuple_Type, &numbers, &load_machine,
                          &record, &construct, &traces, &number_of, &evaluate,
                          &unsettable, &closed_error))
        return NULL;
    PyObject *kept[] = {load_machine, record, construct, traces,
                        number_of, evaluate, unsettable, closed_error};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        Py_INCREF(kept[i]);
    for (Py_ssize_t i = 0; i < PyTuple_Size(numbers) && i < 32; i++)
        codes[i] = (int)PyLong_AsLong(PyTuple_GetItem(numbers, i));
    if (PyErr_Occurred())
        return NULL;
    ValueType = (PyTypeObject *)PyType_FromSpecWithBases(&value_spec, base);
    Py_XINCREF((PyObject *)ValueType);
    return (PyObject *)ValueType;
}

static PyMethodDef functions[] = {
    {"make", make, METH_VARARGS, "The class of values."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_value", "The recorder of scalars.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__value(void) {
    PyObject *module = PyModule_Create(&definition);
    TapeType = (PyTypeObject *)PyType_FromSpec(&tape_spec);
    if (!module || !TapeType)
        return NULL;
    Py_INCREF((PyObject *)TapeType);
    if (PyModule_AddStringConstant(module, "STAMP", RETROGRAD_STAMP)
        || PyModule_AddObject(module, "Tape", (PyObject *)TapeType))
        return NULL;
    return module;
}
