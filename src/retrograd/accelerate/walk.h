/* The way back through calls that have run: the gradients of leaves. A part of `immediate.c`, and of
   no other file. */

#ifndef RETROGRAD_WALK_H
#define RETROGRAD_WALK_H

/* -- backward ------------------------------------------------------------------------------------ */

typedef struct {
    Call *call;
    PyObject **gradients; /* of its results, so far */
    Py_ssize_t results;   /* as many as there were when the walk met it */
} Step;

/* The calls below a result. One walk at a time: a call knows its place in the last that met it. */
typedef struct {
    PyObject_HEAD
    PyObject *root, *leaves, *places; /* Nodes, and where each is among them */
    Step *steps;
    Py_ssize_t count, room;
    long long number;
} Walk;

static long long walks, marked; /* how many there were, and whose places calls know */
static PyTypeObject *walk_type;

/* Whether it only moves elements, and Python goes back through it. */
static int is_moved(const Call *call)
{
    return PyObject_TypeCheck((PyObject *)call, moved_class);
}

static Py_ssize_t results_of(const Call *call)
{
    return is_moved(call) ? 1 : ((Kernel *)call->kernel)->results;
}

static int walk_traverse(Walk *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->root);
    Py_VISIT(self->leaves);
    Py_VISIT(self->places);
    for (Py_ssize_t k = 0; k < self->count; k++)
        Py_VISIT((PyObject *)self->steps[k].call);
    return 0;
}

static int walk_clear(Walk *self)
{
    Py_ssize_t n = self->count;
    self->count = 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        Step *step = &self->steps[k];
        for (Py_ssize_t i = 0; i < step->results; i++)
            Py_XDECREF(step->gradients[i]);
        PyMem_Free(step->gradients);
        Py_DECREF((PyObject *)step->call);
    }
    Py_CLEAR(self->root);
    Py_CLEAR(self->leaves);
    Py_CLEAR(self->places);
    return 0;
}

static void walk_dealloc(Walk *self)
{
    PyTypeObject *own = TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(own, Py_tp_free);
    PyObject_GC_UnTrack((PyObject *)self);
    walk_clear(self);
    PyMem_Free(self->steps);
    release(self);
    Py_DECREF((PyObject *)own);
}

/* What a way back is about: the values that its program takes, and where its results go. */
#define VALUES 256
typedef struct {
    int64_t from, to, more;
    PyObject *values[VALUES];
    PyObject **place[OPERANDS];
    Py_ssize_t count;
} Way;

/* Whether a way back through a call has room for all that is about. */
static int is_small(const Call *call)
{
    Py_ssize_t edges = PyTuple_Size(call->edges), results = results_of(call);
    return is_moved(call)
           || (edges <= OPERANDS && results <= OUTPUTS
               && PyTuple_Size(call->given) + results + edges <= VALUES);
}

/* Have a call be one of a walk; -1: it cannot be. */
static int meet(Walk *walk, PyObject *object)
{
    Call *call = (Call *)object;
    Step *step;
    if (object == NULL || (TYPE(object) != call_class && !is_moved(call))
        || call->freed || !is_small(call))
        return -1;
    if (call->walk == walk->number)
        return 0;
    if (walk->count == walk->room) {
        Py_ssize_t room = 2 * walk->room + 64;
        Step *steps = PyMem_Realloc(walk->steps, (size_t)room * sizeof *steps);
        if (steps == NULL)
            return -1;
        walk->steps = steps;
        walk->room = room;
    }
    step = &walk->steps[walk->count];
    step->results = results_of(call);
    step->gradients = PyMem_Calloc((size_t)step->results + 1, sizeof *step->gradients);
    if (step->gradients == NULL)
        return -1;
    Py_INCREF(object);
    step->call = call;
    call->walk = walk->number;
    call->place = walk->count++;
    return 0;
}

/* Whether a gradient goes from any result of a call to an operand. */
static int reaches(const Call *call, Py_ssize_t k)
{
    const Kernel *kernel = (const Kernel *)call->kernel;
    if (is_moved(call))
        return 1;
    for (Py_ssize_t i = 0; i < kernel->results; i++)
        if (kernel->reach[i] >> k & 1)
            return 1;
    return 0;
}

/* Go on to what a call was computed from; -1: that cannot be. */
static int go_on(Walk *walk, const Call *call)
{
    for (Py_ssize_t k = 0; k < PyTuple_Size(call->edges); k++) {
        PyObject *edge = PyTuple_GetItem(call->edges, k);
        if (edge == Py_None || !reaches(call, k))
            continue;
        if (TYPE(edge) == output_class) {
            if (((Output *)edge)->freed || meet(walk, ((Output *)edge)->call) < 0)
                return -1;
        }
        else if (PyDict_GetItemWithError(walk->places, edge) == NULL) {
            PyObject *place = PyLong_FromSsize_t(PyList_Size(walk->leaves));
            if (place == NULL || PyDict_SetItem(walk->places, edge, place) < 0
                || PyList_Append(walk->leaves, edge) < 0) {
                Py_XDECREF(place);
                return -1;
            }
            Py_DECREF(place);
        }
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    long long x = ((const Step *)a)->call->number, y = ((const Step *)b)->call->number;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The way back from a result to leaves; None where Python has to look for it. */
static PyObject *walk_from(PyObject *module, PyObject *root)
{
    Walk *walk = fresh(walk_type);
    int fits;
    if (walk == NULL)
        return NULL;
    marked = walk->number = ++walks;
    walk->leaves = PyList_New(0);
    walk->places = PyDict_New();
    fits = walk->leaves != NULL && walk->places != NULL && TYPE(root) == output_class
           && !((Output *)root)->freed && meet(walk, ((Output *)root)->call) == 0;
    for (Py_ssize_t k = 0; fits && k < walk->count; k++)
        fits = go_on(walk, walk->steps[k].call) == 0;
    if (!fits) {
        Py_DECREF((PyObject *)walk);
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NONE;
    }
    Py_INCREF(root);
    walk->root = root;
    qsort(walk->steps, (size_t)walk->count, sizeof *walk->steps, by_number);
    for (Py_ssize_t k = 0; k < walk->count; k++)
        walk->steps[k].call->place = k;
    return (PyObject *)walk;
}

/* Have calls know their places, unless they do. */
static void mark(const Walk *walk)
{
    if (marked == walk->number)
        return;
    for (Py_ssize_t k = 0; k < walk->count; k++)
        walk->steps[k].call->place = k;
    marked = walk->number;
}

/* Where the gradient of an edge is kept; NULL: nobody asks for it. */
static PyObject **gradient_of(Walk *walk, PyObject *edge, PyObject **leaf_gradients,
                              const char *asked)
{
    if (TYPE(edge) == output_class) {
        const Output *x = (const Output *)edge;
        return &walk->steps[((Call *)x->call)->place].gradients[x->index];
    }
    Py_ssize_t place = PyLong_AsSsize_t(PyDict_GetItemWithError(walk->places, edge));
    return asked[place] ? &leaf_gradients[place] : NULL;
}

static Back *back_for(const Kernel *kernel, int64_t from, int64_t to, int64_t more)
{
    for (Back *back = kernel->back; back != NULL; back = back->next)
        if (back->from == from && back->to == to && back->more == more)
            return back;
    return NULL;
}

static void find_way(Walk *walk, const Step *step, PyObject **leaf_gradients, const char *asked,
                     Way *way)
{
    const Call *call = step->call;
    const Kernel *kernel = (const Kernel *)call->kernel;
    int64_t reach = 0;
    Py_ssize_t given = PyTuple_Size(call->given), n = 0;
    way->from = way->to = way->more = 0;
    for (; n < given; n++)
        way->values[n] = PyTuple_GetItem(call->given, n);
    for (Py_ssize_t i = 0; i < step->results; i++)
        if (step->gradients[i] != NULL) {
            way->from |= (int64_t)1 << i;
            reach |= kernel->reach[i];
            way->values[n++] = step->gradients[i];
        }
    for (Py_ssize_t k = 0; way->from != 0 && k < PyTuple_Size(call->edges); k++) {
        PyObject *edge = PyTuple_GetItem(call->edges, k);
        way->place[k] = NULL;
        if (edge == Py_None || !(reach >> k & 1))
            continue;
        way->place[k] = gradient_of(walk, edge, leaf_gradients, asked);
        if (way->place[k] == NULL)
            continue;
        way->to |= (int64_t)1 << k;
        if (*way->place[k] != NULL) {
            way->more |= (int64_t)1 << k;
            way->values[n++] = *way->place[k];
        }
    }
    way->count = n;
}

static void put(PyObject **place, PyObject *gradient)
{
    PyObject *old = *place;
    *place = gradient;
    Py_XDECREF(old);
}

/* Sizes of what a call was given. */
static Py_ssize_t sizes_in(const Call *call, int64_t *sizes)
{
    Py_ssize_t n = 0, operands = PyTuple_Size(call->edges);
    for (Py_ssize_t k = 0; k < operands; k++) {
        PyArrayObject *array = (PyArrayObject *)PyTuple_GetItem(call->given, k);
        for (int i = 0; i < PyArray_NDIM(array); i++, n++)
            if (n < WORDS)
                sizes[n] = (int64_t)PyArray_DIMS(array)[i];
    }
    for (Py_ssize_t k = 0; k < PyTuple_Size(call->ints); k++, n++)
        if (n < WORDS)
            sizes[n] = PyLong_AsLongLong(PyTuple_GetItem(call->ints, k));
    return n;
}

/* Whether values are arrays as a program takes them. */
static int are_plain(PyObject *const *values, Py_ssize_t n)
{
    for (Py_ssize_t k = 0; k < n; k++)
        if (values[k] != Py_None
            && (!PyArray_CheckExact(values[k])
                || (PyArray_FLAGS((PyArrayObject *)values[k]) & READABLE) != READABLE
                || PyArray_SIZE((PyArrayObject *)values[k]) == 0))
            return 0;
    return 1;
}

/* Go back by a known program; 0: there is none. */
static int go_back(const Call *call, Way *way)
{
    Kernel *kernel = (Kernel *)call->kernel;
    Back *back = back_for(kernel, way->from, way->to, way->more);
    PyObject *arrays[OUTPUTS], *passed[OPERANDS];
    int64_t sizes[WORDS], names[NAMES];
    Py_ssize_t n;
    if (back == NULL || !are_plain(way->values, way->count))
        return 0;
    n = sizes_in(call, sizes);
    if (back->brief != NULL) {
        int done;
        if (n > WORDS || !names_in(kernel, sizes, n, names))
            return 0;
        Py_INCREF((PyObject *)back->brief);
        done = run_brief(back->brief, way->values, call->numbers, names, arrays);
        Py_DECREF((PyObject *)back->brief);
        if (!done)
            return 0;
    }
    for (Py_ssize_t k = 0; k < back->passed; k++) {
        passed[k] = way->values[back->pass[2 * k + 1]];
        Py_INCREF(passed[k]);
    }
    for (Py_ssize_t k = 0; k < back->passed; k++)
        put(way->place[back->pass[2 * k]], passed[k]);
    for (Py_ssize_t k = 0; k < back->computed; k++)
        put(way->place[back->compute[k]], arrays[k]);
    return 1;
}

/* The same by a program that Python finds; -1 with an exception. */
static int ask_back(PyObject *call, Way *way)
{
    PyObject *values = tuple_of(way->values, way->count, NULL, 0, 0), *found = NULL;
    if (values != NULL)
        found = PyObject_CallMethod(call, "pulled", "LLLO", (long long)way->from,
                                    (long long)way->to, (long long)way->more, values);
    Py_XDECREF(values);
    if (found == NULL)
        return -1;
    for (Py_ssize_t k = 0; k < PyTuple_Size(found); k++) {
        PyObject *gradient = PyTuple_GetItem(found, k);
        if (gradient != Py_None) {
            Py_INCREF(gradient);
            put(way->place[k], gradient);
        }
    }
    Py_DECREF(found);
    return 0;
}

/* The gradients of the operands of a call, None where there is none: `FunctionCall.pulled`. */
static PyObject *pull(PyObject *module, PyObject *args)
{
    PyObject *object, *values, *gradients[OPERANDS] = {NULL}, *result = NULL;
    long long from, to, more;
    Call *call;
    Way way;
    if (!PyArg_ParseTuple(args, "OLLLO!", &object, &from, &to, &more, &PyTuple_Type, &values))
        return NULL;
    call = (Call *)object;
    if (TYPE(object) != call_class || call->given == NULL || !is_small(call)
        || PyTuple_Size(values) > VALUES || to >> PyTuple_Size(call->edges) != 0)
        return PyObject_CallMethod(object, "pulled", "LLLO", from, to, more, values);
    way.from = from;
    way.to = to;
    way.more = more;
    way.count = PyTuple_Size(values);
    for (Py_ssize_t k = 0; k < way.count; k++)
        way.values[k] = PyTuple_GetItem(values, k);
    for (int k = 0; k < OPERANDS; k++)
        way.place[k] = to >> k & 1 ? &gradients[k] : NULL;
    if (go_back(call, &way) || (!PyErr_Occurred() && ask_back(object, &way) == 0))
        result = tuple_of(gradients, PyTuple_Size(call->edges), NULL, 0, 0);
    for (int k = 0; k < OPERANDS; k++)
        Py_XDECREF(gradients[k]);
    return result;
}

/* Go back through a call that moves elements: it adds to what there is. Of what nobody asks for, an
   ellipsis is in the place of the gradient so far. */
static int go_back_moved(Walk *walk, const Step *step, PyObject **leaf_gradients,
                         const char *asked, PyObject *slices)
{
    PyObject *edges = step->call->edges, *so_far, *found;
    Py_ssize_t n = PyTuple_Size(edges);
    if (step->gradients[0] == NULL)
        return 0;
    so_far = PyTuple_New(n);
    for (Py_ssize_t k = 0; so_far != NULL && k < n; k++) {
        PyObject *edge = PyTuple_GetItem(edges, k), *x = Py_Ellipsis, **place = NULL;
        if (edge != Py_None)
            place = gradient_of(walk, edge, leaf_gradients, asked);
        if (place != NULL)
            x = *place != NULL ? *place : Py_None;
        Py_IncRef(x);
        PyTuple_SetItem(so_far, k, x);
    }
    found = so_far == NULL ? NULL
                           : PyObject_CallMethod((PyObject *)step->call, "totals", "OOO", slices,
                                                 step->gradients[0], so_far);
    for (Py_ssize_t k = 0; found != NULL && k < n; k++) {
        PyObject *total = PyTuple_GetItem(found, k);
        if (total != Py_Ellipsis && total != PyTuple_GetItem(so_far, k)) {
            mark(walk); /* code of others may have walked meanwhile */
            Py_INCREF(total);
            put(gradient_of(walk, PyTuple_GetItem(edges, k), leaf_gradients, asked), total);
        }
    }
    Py_XDECREF(so_far);
    if (found == NULL)
        return -1;
    Py_DECREF(found);
    return 0;
}

static int go_through(Walk *walk, PyObject **leaf_gradients, const char *asked, PyObject *slices)
{
    for (Py_ssize_t k = 0; k < walk->count; k++) {
        Step *step = &walk->steps[k];
        Way way;
        mark(walk);
        if (is_moved(step->call)) {
            if (go_back_moved(walk, step, leaf_gradients, asked, slices) < 0)
                return -1;
        }
        else {
            find_way(walk, step, leaf_gradients, asked, &way);
            if (way.to != 0 && !go_back(step->call, &way)) {
                if (PyErr_Occurred())
                    return -1;
                if (ask_back((PyObject *)step->call, &way) < 0)
                    return -1;
            }
        }
        for (Py_ssize_t i = 0; i < step->results; i++)
            Py_CLEAR(step->gradients[i]);
    }
    return 0;
}

static PyObject *walk_run(Walk *self, PyObject *args)
{
    PyObject *seed, *wanted, *slices, *result = NULL, **gradients;
    Py_ssize_t n = PyList_Size(self->leaves);
    Output *root = (Output *)self->root;
    char *asked;
    if (!PyArg_ParseTuple(args, "OO!O", &seed, &PyList_Type, &wanted, &slices))
        return NULL;
    if (PyList_Size(wanted) != n || !PyArray_CheckExact(seed)) {
        PyErr_SetString(PyExc_TypeError, "an array and a flag for each leaf are needed");
        return NULL;
    }
    gradients = PyMem_Calloc((size_t)n + 1, sizeof *gradients);
    asked = PyMem_Calloc((size_t)n + 1, 1);
    if (gradients != NULL && asked != NULL) {
        for (Py_ssize_t k = 0; k < n; k++)
            asked[k] = PyList_GetItem(wanted, k) == Py_True;
        for (Py_ssize_t k = 0; k < self->count; k++)
            if ((PyObject *)self->steps[k].call == root->call) {
                Py_INCREF(seed);
                put(&self->steps[k].gradients[root->index], seed);
            }
        if (go_through(self, gradients, asked, slices) == 0)
            result = tuple_of(gradients, n, NULL, 0, 0);
    }
    else
        PyErr_NoMemory();
    for (Py_ssize_t k = 0; gradients != NULL && k < n; k++)
        Py_XDECREF(gradients[k]);
    PyMem_Free(gradients);
    PyMem_Free(asked);
    return result;
}

static PyMethodDef walk_methods[] = {
    {"run", (PyCFunction)walk_run, METH_VARARGS,
     "The gradients of leaves, None where there is none: from that of the result, which leaves are "
     "asked about, and what adds up gradients of slices."},
    {NULL},
};

static PyMemberDef walk_members[] = {
    {"leaves", T_OBJECT, offsetof(Walk, leaves), READONLY, NULL},
    {NULL},
};

static PyType_Slot walk_slots[] = {
    {Py_tp_doc, "The calls below a result, the last first, and the leaves below these."},
    {Py_tp_traverse, walk_traverse}, {Py_tp_clear, walk_clear},
    {Py_tp_dealloc, walk_dealloc},   {Py_tp_members, walk_members},
    {Py_tp_methods, walk_methods},   {0, NULL},
};
static PyType_Spec walk_spec = {
    "retrograd.accelerate._immediate.Walk", sizeof(Walk), 0,
    GC_FLAGS | Py_TPFLAGS_DISALLOW_INSTANTIATION, walk_slots,
};

#endif
