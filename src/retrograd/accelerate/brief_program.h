/* Programs that `immediate.c` runs: what they take and give, the sizes of that, and how they are run.
   A part of that file, and of no other. */

#ifndef RETROGRAD_BRIEF_PROGRAM_H
#define RETROGRAD_BRIEF_PROGRAM_H

/* -- sizes --------------------------------------------------------------------------------------- */

/* A polynomial in named sizes and quotients: the number of terms; of each its factor, the number of
   powers, and for each of these an atom and an exponent. An atom is the number of a name, or
   QUOTIENT, and two polynomials. */
typedef int64_t *Size;
#define QUOTIENT -1

/* The value of a polynomial, and what is behind it. */
static int64_t read_size(const int64_t **place, const int64_t *names)
{
    int64_t total = 0;
    for (int64_t terms = *(*place)++; terms > 0; terms--) {
        int64_t term = *(*place)++;
        for (int64_t powers = *(*place)++; powers > 0; powers--) {
            int64_t atom = *(*place)++, value;
            if (atom == QUOTIENT) {
                int64_t above = read_size(place, names), below = read_size(place, names);
                value = below == 0 ? 0 : above / below;
                value -= below != 0 && above % below != 0 && (above < 0) != (below < 0);
            }
            else
                value = names[atom];
            for (int64_t k = *(*place)++; k > 0; k--)
                term *= value;
        }
        total += term;
    }
    return total;
}

static int64_t size_at(const int64_t *size, const int64_t *names)
{
    return read_size(&size, names);
}

/* The C array of a sequence of whole numbers, one more at the end; NULL with an exception. */
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
    if (count != NULL)
        *count = n;
    return found;
}

/* Sizes of a sequence of them, and how many there are; NULL with an exception. */
static Size *sizes_of(PyObject *sequence, Py_ssize_t *count)
{
    Py_ssize_t n = PySequence_Size(sequence);
    Size *found = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof(Size));
    *count = 0;
    for (Py_ssize_t k = 0; found != NULL && k < n; k++) {
        PyObject *item = PySequence_GetItem(sequence, k);
        found[k] = item != NULL ? numbers_of(item, NULL) : NULL;
        Py_XDECREF(item);
        if (found[k] == NULL) {
            while (k > 0)
                PyMem_Free(found[--k]);
            PyMem_Free(found);
            return NULL;
        }
        *count = k + 1;
    }
    return found;
}

static void free_sizes(Size *sizes, Py_ssize_t count)
{
    for (Py_ssize_t k = 0; sizes != NULL && k < count; k++)
        PyMem_Free(sizes[k]);
    PyMem_Free(sizes);
}

/* -- programs ------------------------------------------------------------------------------------ */

enum { VALUE, ADDRESS, NUMBER };

/* Where an input is: a value of the call, an address, or a number of it as float32 or float64. */
typedef struct {
    int kind, single;
    int64_t what;
} Input;

typedef struct {
    PyArray_Descr *dtype;
    Py_ssize_t rank;
    Size *shape;
} Result;

#define PACE_WORDS 17        /* as in runtime/native/layout.py */
enum { HELD, RELEASED, SHARED }; /* the interpreter's lock during a run; by several threads */

/* Sizes for which it is known where temporaries are, by offsets in the memory of a call, and how the
   program is run; see `rounded` in schedule/shape_checks.py. */
typedef struct Bucket {
    struct Bucket *next;
    int64_t *names, *offsets, arena;
    int how;
    int64_t pace[PACE_WORDS]; /* how runs are to go, see runtime/native/pace.c */
} Bucket;

typedef struct {
    PyObject_HEAD
    PyObject *keep; /* what has the code and the memory */
    Program program;
    int64_t *frame, arena; /* of calls that hold the lock; others have a copy */
    Py_ssize_t inputs, outputs, sizes, names, temporaries;
    Py_ssize_t first_size, first_temporary, slots, stop; /* `stop`: see call_frame.py */
    int64_t scratch; /* bytes for each thread, which then has a copy of the frame */
    int64_t largest; /* sizes beyond are not rounded */
    char *spare;     /* memory of an earlier call */
    size_t spare_bytes;
    Input *input;
    Result *output;
    Size *size;
    Bucket *buckets;
    Py_ssize_t known; /* how many */
} Brief;

#define BUCKETS 256

static void free_buckets(Brief *self)
{
    while (self->buckets != NULL) {
        Bucket *gone = self->buckets;
        self->buckets = gone->next;
        PyMem_Free(gone->names);
        PyMem_Free(gone->offsets);
        PyMem_Free(gone);
    }
}

static int input_fill(Input *input, PyObject *row)
{
    const char *type;
    long long what;
    if (!PyArg_ParseTuple(row, "iLs", &input->kind, &what, &type))
        return -1;
    input->what = what;
    input->single = type[0] == 'f';
    return 0;
}

static int result_fill(Result *result, PyObject *row)
{
    PyObject *dtype, *shape;
    if (!PyArg_ParseTuple(row, "OO", &dtype, &shape))
        return -1;
    if (!PyArray_DescrCheck(dtype)) {
        PyErr_SetString(PyExc_TypeError, "a dtype is needed");
        return -1;
    }
    result->shape = sizes_of(shape, &result->rank);
    if (result->shape == NULL)
        return -1;
    if (result->rank > NPY_MAXDIMS) {
        PyErr_SetString(PyExc_ValueError, "too many axes");
        return -1;
    }
    Py_IncRef(dtype);
    result->dtype = (PyArray_Descr *)dtype;
    return 0;
}

static int brief_init(Brief *self, PyObject *args, PyObject *keywords)
{
    PyObject *keep, *inputs, *outputs, *sizes;
    long long program, frame, arena, largest, scratch;
    if (self->keep != NULL
        || !PyArg_ParseTuple(args, "OLLLO!O!OnnnnnnLL", &keep, &program, &frame, &arena,
                             &PyList_Type, &inputs, &PyList_Type, &outputs, &sizes, &self->names,
                             &self->first_size, &self->first_temporary, &self->temporaries,
                             &self->slots, &self->stop, &scratch, &largest))
        return -1;
    self->scratch = scratch;
    self->arena = arena;
    Py_INCREF(keep);
    self->keep = keep;
    self->program = (Program)(intptr_t)program;
    self->frame = (int64_t *)(intptr_t)frame;
    self->largest = largest;
    self->input = PyMem_Calloc((size_t)PyList_Size(inputs) + 1, sizeof *self->input);
    self->output = PyMem_Calloc((size_t)PyList_Size(outputs) + 1, sizeof *self->output);
    if (self->input == NULL || self->output == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; self->inputs < PyList_Size(inputs); self->inputs++)
        if (input_fill(&self->input[self->inputs], PyList_GetItem(inputs, self->inputs)) < 0)
            return -1;
    for (; self->outputs < PyList_Size(outputs); self->outputs++)
        if (result_fill(&self->output[self->outputs], PyList_GetItem(outputs, self->outputs)) < 0)
            return -1;
    self->size = sizes_of(sizes, &self->sizes);
    if (self->size == NULL)
        return -1;
    if (self->outputs > OUTPUTS || self->names > NAMES) {
        PyErr_SetString(PyExc_ValueError, "too many outputs or names");
        return -1;
    }
    return 0;
}

static void brief_dealloc(Brief *self)
{
    PyTypeObject *own = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(own, Py_tp_free);
    free_buckets(self);
    for (Py_ssize_t k = 0; k < self->outputs; k++) {
        free_sizes(self->output[k].shape, self->output[k].rank);
        Py_DecRef((PyObject *)self->output[k].dtype);
    }
    free_sizes(self->size, self->sizes);
    PyMem_Free(self->input);
    PyMem_Free(self->output);
    free(self->spare);
    Py_XDECREF(self->keep);
    release(self);
    Py_DECREF((PyObject *)own);
}

/* A size as memory is laid out for it. */
static int64_t rounded(int64_t n, int64_t largest)
{
    int64_t step = 1;
    if (n > largest)
        return n;
    while (n >= 8 * step)
        step *= 2;
    return (n + step - 1) / step * step;
}

/* Those that sizes are among; NULL: it is not known where temporaries are. */
static Bucket *bucket_of(Brief *brief, const int64_t *names)
{
    for (Bucket *b = brief->buckets; b != NULL; b = b->next) {
        Py_ssize_t k = 0;
        while (k < brief->names && b->names[k] == rounded(names[k], brief->largest))
            k++;
        if (k == brief->names)
            return b;
    }
    return NULL;
}

static PyObject *brief_allow(Brief *self, PyObject *args)
{
    PyObject *names, *offsets;
    Py_ssize_t count = 0, places = 0;
    long long arena;
    int how;
    Bucket *new;
    if (!PyArg_ParseTuple(args, "OOLi", &names, &offsets, &arena, &how))
        return NULL;
    new = PyMem_Calloc(1, sizeof *new);
    if (new == NULL)
        return PyErr_NoMemory();
    new->arena = arena;
    new->how = how;
    new->names = numbers_of(names, &count);
    new->offsets = new->names != NULL ? numbers_of(offsets, &places) : NULL;
    if (new->offsets == NULL || count != self->names || places != self->temporaries) {
        if (new->offsets != NULL)
            PyErr_SetString(PyExc_ValueError, "sizes and places of other names or temporaries");
        PyMem_Free(new->names);
        PyMem_Free(new->offsets);
        PyMem_Free(new);
        return NULL;
    }
    if (bucket_of(self, new->names) != NULL) {
        PyMem_Free(new->names);
        PyMem_Free(new->offsets);
        PyMem_Free(new);
        Py_RETURN_NONE;
    }
    for (Py_ssize_t k = 0; k < count; k++)
        new->names[k] = rounded(new->names[k], self->largest);
    if (self->known++ >= BUCKETS) { /* large sizes that keep changing */
        free_buckets(self);
        self->known = 1;
    }
    new->next = self->buckets;
    self->buckets = new;
    Py_RETURN_NONE;
}

/* New arrays for the results; 0: there are none, with or without an exception. */
static int allocate(const Brief *brief, const int64_t *names, PyObject **arrays)
{
    for (Py_ssize_t k = 0; k < brief->outputs; k++) {
        const Result *result = &brief->output[k];
        npy_intp shape[NPY_MAXDIMS];
        for (Py_ssize_t i = 0; i < result->rank; i++) {
            shape[i] = (npy_intp)size_at(result->shape[i], names);
            if (shape[i] < 0)
                return 0;
        }
        Py_IncRef((PyObject *)result->dtype); /* which is taken */
        arrays[k] = PyArray_NewFromDescr(&PyArray_Type, result->dtype, (int)result->rank, shape,
                                         NULL, NULL, 0, NULL);
        if (arrays[k] == NULL)
            return 0;
    }
    return 1;
}

static void drop(PyObject **objects, Py_ssize_t n)
{
    for (Py_ssize_t k = 0; k < n; k++)
        Py_CLEAR(objects[k]);
}

/* A number of Python's as a program takes it, in a cell. */
static int fill_number(const Input *input, PyObject *numbers, int64_t *cell)
{
    PyObject *x = numbers != NULL ? PyTuple_GetItem(numbers, input->what) : NULL;
    double value;
    float single;
    if (x == NULL)
        return 0;
    value = PyFloat_CheckExact(x) ? PyFloat_AsDouble(x) : (double)PyLong_AsLongLong(x);
    single = (float)value;
    if (input->single)
        memcpy(cell, &single, sizeof single);
    else
        memcpy(cell, &value, sizeof value);
    return 1;
}

/* What a program runs on. */
typedef struct {
    PyObject *const *values;
    PyObject *numbers;
    const int64_t *names;
    Bucket *bucket;
} Given;

/* Fill in a frame, with temporaries behind an address; 0: a number is missing. */
static int fill(const Brief *brief, const Given *given, PyObject **arrays, int64_t *frame,
                int64_t *cells, int64_t base)
{
    for (Py_ssize_t k = 0; k < brief->inputs; k++) {
        const Input *input = &brief->input[k];
        frame[k] = (int64_t)(intptr_t)&cells[k];
        if (input->kind == NUMBER) {
            if (!fill_number(input, given->numbers, &cells[k]))
                return 0;
        }
        else if (input->kind == ADDRESS)
            frame[k] = input->what;
        else {
            PyObject *array = given->values[input->what];
            if (array != NULL && array != Py_None) /* else it stands for a size alone */
                frame[k] = (int64_t)(intptr_t)PyArray_DATA((PyArrayObject *)array);
        }
    }
    for (Py_ssize_t k = 0; k < brief->outputs; k++)
        frame[brief->inputs + k] = (int64_t)(intptr_t)PyArray_DATA((PyArrayObject *)arrays[k]);
    for (Py_ssize_t k = 0; k < brief->temporaries; k++)
        frame[brief->first_temporary + k] = base + given->bucket->offsets[k];
    for (Py_ssize_t k = 0; k < brief->sizes; k++)
        frame[brief->first_size + k] = size_at(brief->size[k], given->names);
    return 1;
}

/* How many threads share a run of those that do; 0: it failed. */
static int64_t threads_here(void)
{
    PyObject *found = PyObject_CallNoArgs(count_threads);
    int64_t n = found != NULL ? PyLong_AsLongLong(found) : 0;
    Py_XDECREF(found);
    return n > 0 ? n : 0;
}

/* Run on a frame of its own, without the interpreter's lock; 0: nothing was done. */
static int run_apart(Brief *brief, const Given *given, PyObject **arrays)
{
    const Bucket *bucket = given->bucket;
    int64_t threads = bucket->how == SHARED ? threads_here() : 1, *frame, failed = 1;
    size_t words = (size_t)brief->slots * (size_t)(1 + (brief->scratch ? threads : 0));
    size_t head = ((words + (size_t)brief->inputs) * 8 + 127) / 64 * 64;
    size_t bytes = head + (size_t)(bucket->arena + brief->scratch * threads) + 64;
    char *memory = brief->spare;
    PyThreadState *state;
    if (threads == 0)
        return 0;
    brief->spare = NULL;
    if (memory == NULL || brief->spare_bytes < bytes) {
        free(memory);
        memory = malloc(bytes);
        brief->spare_bytes = bytes;
        if (memory == NULL)
            return 0;
    }
    bytes = brief->spare_bytes;
    frame = (int64_t *)memory;
    memset(memory, 0, words * 8);
    memcpy(frame, brief->frame, (size_t)brief->slots * 8);
    frame[brief->stop] = (int64_t)(intptr_t)(frame + brief->stop - 1);
    frame[brief->stop - 1] = 0;
    if (fill(brief, given, arrays, frame, frame + words,
             ((int64_t)(intptr_t)memory + (int64_t)head + 63) / 64 * 64)) {
        state = PyEval_SaveThread();
        failed = threads == 1 ? brief->program(frame, 0, 1, NULL)
                              : launch(team, (void *)brief->program, frame, threads,
                                       given->bucket->pace, NULL);
        PyEval_RestoreThread(state);
    }
    if (brief->spare == NULL && bytes <= SPARE_BYTES) {
        brief->spare = memory;
        brief->spare_bytes = bytes;
    }
    else
        free(memory);
    return failed == 0;
}

/* Run a program; `values` are arrays that are known to be as they have to be, and held. New arrays
   in `arrays`; 0: nothing was done, with or without an exception. */
static int run_brief(Brief *brief, PyObject *const *values, PyObject *numbers,
                     const int64_t *names, PyObject **arrays)
{
    Given given = {values, numbers, names, bucket_of(brief, names)};
    int64_t cells[CELLS];
    int done;
    memset(arrays, 0, (size_t)brief->outputs * sizeof *arrays);
    if (given.bucket == NULL || brief->inputs > CELLS)
        return 0;
    if (!allocate(brief, names, arrays)) {
        drop(arrays, brief->outputs);
        return 0;
    }
    given.bucket = bucket_of(brief, names); /* code of others may have run, but none does from here */
    if (given.bucket == NULL)
        done = 0;
    else if (given.bucket->how == HELD)
        done = fill(brief, &given, arrays, brief->frame, cells, brief->arena)
               && brief->program(brief->frame, 0, 1, NULL) == 0;
    else
        done = run_apart(brief, &given, arrays);
    if (!done)
        drop(arrays, brief->outputs);
    return done;
}

static PyMethodDef brief_methods[] = {
    {"allow", (PyCFunction)brief_allow, METH_VARARGS,
     "The program may be run at sizes that are rounded to these: the offsets of temporaries in "
     "memory, how many bytes that is, and whether the lock is held (0) or not, and threads share."},
    {NULL},
};

static PyType_Slot brief_slots[] = {
    {Py_tp_doc, "A program that takes little time, on a frame of its own."},
    {Py_tp_init, brief_init},
    {Py_tp_dealloc, brief_dealloc},
    {Py_tp_methods, brief_methods},
    {0, NULL},
};
static PyType_Spec brief_spec = {
    "retrograd.accelerate._immediate.BriefProgram", sizeof(Brief), 0, Py_TPFLAGS_DEFAULT,
    brief_slots,
};
static PyTypeObject *brief_type;

#endif
