"""Native calls, second half: memory for outputs, the run, tensors and their containers.

Everything from the first look at the arguments to the last change happens under the interpreter's
lock, with nothing in between that could run anybody's Python code: the collector is off, dicts are
only searched if all keys are plain strings, and what may be the last reference to something is
dropped at the end. So arguments need not be held, and a call that turns out not to be served, at
whatever point before `commit`, has done nothing.

In the shorthand of `shorthand.py`; see `call_arguments.py` for objects. A `way`: 0 rows of arrays,
1 how many; 2 addresses of captured arrays, 3 how many; 4 rows of outputs, 5 how many; 6 rows of
steps that make containers, 7 how many, 8 the register of the first; 9 rows of donated tensors, 10
how many; 11 the program, or null if it is to run later, 12 its block, 13 cells for numbers; 14
registers; 15 bytes of a block and its cells; 16 the register of the result.
"""

TEXT = """
; Drops the references in n registers, where there are any.
define internal void @drop(ptr %V, i64 %n) {
start:
  for %k %n
  %x = get ptr %V %k
  %none = icmp eq ptr %x, null
  skip %none
  call void @Py_DecRef(ptr %x)
  end
  ret void
}

; Addresses of the inputs: of numbers a cell each, of arrays their data.
define internal void @inputs(ptr %A, ptr %N, i64 %n, ptr %block, ptr %cells) {
start:
  for %k %n
  %a = get ptr %A %k
  %bits = get i64 %N %k
  put i64 %bits %cells %k
  %cell = getelementptr i64, ptr %cells, i64 %k
  put ptr %cell %block %k
  %number = icmp eq ptr %a, null
  skip %number
  %data = get ptr %a 2
  put ptr %data %block %k
  end
  ret void
}

; Tensors for the outputs, in %V and %T, and the addresses of their arrays. A row: dtype, rank and
; sizes of a new array; or null and which input's array it is, that the tensor gets in the end. 0 if
; there is no memory.
define internal i64 @outputs(ptr %way, ptr %world, ptr %A, ptr %V, ptr %T, ptr %block) {
start:
  %rows = get ptr %way 4
  %n = get i64 %way 5
  %ndarray = get ptr %world 0
  %class = get ptr %world 2
  %slot = get i64 %world 3
  for %k %n
  %t = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  put ptr %t %V %k
  put ptr %t %T %k
  %t.ok = icmp ne ptr %t, null
  need %t.ok else bad
  %o = row %rows %k 3
  %dtype = get ptr %o 0
  %number = get i64 %o 1
  %sizes = get ptr %o 2
  %taken = icmp eq ptr %dtype, null
  br i1 %taken, label %old, label %new
old:
  %donor = get ptr %A %number
  br label %memory
new:
  %rank = trunc i64 %number to i32
  call void @Py_IncRef(ptr %dtype)
  %fresh = call ptr @PyArray_NewFromDescr(
    ptr %ndarray, ptr %dtype, i32 %rank, ptr %sizes, ptr null, ptr null, i32 0, ptr null)
  put ptr %fresh %t %slot
  %fresh.ok = icmp ne ptr %fresh, null
  br i1 %fresh.ok, label %memory, label %bad
memory:
  %a = phi ptr [ %donor, %old ], [ %fresh, %new ]
  %data = get ptr %a 2
  put ptr %data %block %k
  end
  ret i64 1
bad:
  ret i64 0
}

; Containers of what is in registers, each in the next register. A row: kind, how many items, what
; it is made of, pairs of an item's register and its key. 0 if there is no memory.
define internal i64 @build(ptr %way, ptr %V) {
start:
  %steps = get ptr %way 6
  %count = get i64 %way 7
  %first = get i64 %way 8
  for %k %count
  %step = row %steps %k 4
  %kind = get i64 %step 0
  %n = get i64 %step 1
  %what = get ptr %step 2
  %pairs = get ptr %step 3
  switch i64 %kind, label %constant [
    i64 1, label %tuple
    i64 2, label %list
    i64 3, label %dict
    i64 4, label %instance
  ]
constant:
  call void @Py_IncRef(ptr %what)
  br label %made
tuple:
  %tuple.new = call ptr @PyTuple_New(i64 %n)
  br label %made
list:
  %list.new = call ptr @PyList_New(i64 %n)
  br label %made
dict:
  %dict.new = call ptr @PyDict_Copy(ptr %what)
  br label %made
instance:
  %instance.new = call ptr @PyType_GenericAlloc(ptr %what, i64 %n)
  br label %made
made:
  %y = phi ptr [ %what, %constant ], [ %tuple.new, %tuple ], [ %list.new, %list ],
    [ %dict.new, %dict ], [ %instance.new, %instance ]
  %at = add i64 %first, %k
  put ptr %y %V %at
  %y.ok = icmp ne ptr %y, null
  br i1 %y.ok, label %place, label %bad
place:
  %inside = getelementptr i64, ptr %y, i64 3
  %is.list = icmp eq i64 %kind, 2
  %is.dict = icmp eq i64 %kind, 3
  br i1 %is.list, label %outside, label %fill
outside:
  %away = get ptr %y 3
  br label %fill
fill:
  %items = phi ptr [ %inside, %place ], [ %away, %outside ]
  for %i %n
  %pair = row %pairs %i 2
  %from = get i64 %pair 0
  %x = get ptr %V %from
  br i1 %is.dict, label %set, label %store
store:
  put ptr %x %items %i
  br label %given
set:
  %key = get ptr %pair 1
  %failed = call i32 @PyDict_SetItem(ptr %y, ptr %key, ptr %x)
  %set.ok = icmp eq i32 %failed, 0
  need %set.ok else bad
  call void @Py_DecRef(ptr %x)
  br label %given
given:
  put ptr null %V %from
  end
  end
  ret i64 1
bad:
  ret i64 0
}

; A list of the arrays, with None for numbers, or null.
define internal ptr @listed(ptr %A, i64 %n, ptr %none) {
start:
  %list = call ptr @PyList_New(i64 %n)
  %ok = icmp ne ptr %list, null
  need %ok else done
  %items = get ptr %list 3
  for %k %n
  %a = get ptr %A %k
  %number = icmp eq ptr %a, null
  %x = select i1 %number, ptr %none, ptr %a
  call void @Py_IncRef(ptr %x)
  put ptr %x %items %k
  end
  br label %done
done:
  ret ptr %list
}

; Donated tensors are gone from here on. A row: which tensor, and the output that gets its array, or
; -1: then that is dropped, after all else.
define internal void @commit(ptr %way, ptr %world, ptr %A, ptr %H, ptr %T, ptr %gone) {
start:
  %rows = get ptr %way 9
  %n = get i64 %way 10
  %slot = get i64 %world 3
  for %k %n
  %r = row %rows %k 2
  %which = get i64 %r 0
  %to = get i64 %r 1
  %h = get ptr %H %which
  %a = get ptr %h %slot
  call void @Py_IncRef(ptr %gone)
  put ptr %gone %h %slot
  put ptr %a %A %which
  %loose = icmp slt i64 %to, 0
  skip %loose
  %t = get ptr %T %to
  put ptr %a %t %slot
  put ptr null %A %which
  end
  for %j %n
  %q = row %rows %j 2
  %from = get i64 %q 0
  %old = get ptr %A %from
  %given = icmp eq ptr %old, null
  skip %given
  call void @Py_DecRef(ptr %old)
  end
  ret void
}

; The result, or null, then nothing was done.
define internal ptr @serve(ptr %site, ptr %world, ptr %given) {
start:
  %room = get i64 %site 4
  %n = get i64 %site 5
  %R = alloca ptr, i64 %room
  %A = alloca ptr, i64 %n
  %H = alloca ptr, i64 %n
  %N = alloca i64, i64 %n
  %args = get ptr %given 0
  %kwargs = get ptr %given 1
  %gone = get ptr %given 2
  put ptr %args %R 0
  put ptr %kwargs %R 1
  %walked = call i64 @walk(ptr %site, ptr %world, ptr %R, ptr %A, ptr %H, ptr %N)
  %known = icmp ne i64 %walked, 0
  need %known else no
  call void @hold(ptr %A, i64 %n, i32 1)
  %way = call ptr @choose(ptr %site, ptr %A)
  call void @hold(ptr %A, i64 %n, i32 -1)
  %chosen = icmp ne ptr %way, null
  need %chosen else no
  %captured = get ptr %way 2
  %captives = get i64 %way 3
  %m = get i64 %way 5
  %run = get ptr %way 11
  %own.block = get ptr %way 12
  %own.cells = get ptr %way 13
  %values = get i64 %way 14
  %bytes = get i64 %way 15
  %root = get i64 %way 16
  %V = alloca ptr, i64 %values
  %T = alloca ptr, i64 %m
  for %c %values
  put ptr null %V %c
  end
  %now = icmp ne ptr %run, null
  br i1 %now, label %at.once, label %later
at.once:
  br label %bind
later:
  ; It runs after this: addresses and cells go into bytes of its own, and the arrays into a list.
  %none = get ptr %world 5
  %record = call ptr @PyBytes_FromStringAndSize(ptr null, i64 %bytes)
  put ptr %record %V %m
  %record.ok = icmp ne ptr %record, null
  need %record.ok else fail
  %arrays = call ptr @listed(ptr %A, i64 %n, ptr %none)
  %m.next = add i64 %m, 1
  put ptr %arrays %V %m.next
  %arrays.ok = icmp ne ptr %arrays, null
  br i1 %arrays.ok, label %held, label %fail
held:
  %new.block = call ptr @PyBytes_AsString(ptr %record)
  %brought = add i64 %n, %captives
  %slots = add i64 %brought, %m
  %new.cells = getelementptr i64, ptr %new.block, i64 %slots
  br label %bind
bind:
  %block = phi ptr [ %own.block, %at.once ], [ %new.block, %held ]
  %cells = phi ptr [ %own.cells, %at.once ], [ %new.cells, %held ]
  call void @inputs(ptr %A, ptr %N, i64 %n, ptr %block, ptr %cells)
  %behind = getelementptr i64, ptr %block, i64 %n
  call void @copy(ptr %captured, ptr %behind, i64 %captives)
  %last = getelementptr i64, ptr %behind, i64 %captives
  %had = call i64 @outputs(ptr %way, ptr %world, ptr %A, ptr %V, ptr %T, ptr %last)
  %had.ok = icmp ne i64 %had, 0
  need %had.ok else fail
  %built = call i64 @build(ptr %way, ptr %V)
  %built.ok = icmp ne i64 %built, 0
  need %built.ok else fail
  br i1 %now, label %go, label %done
go:
  %check = call i64 %run(ptr %block, i64 0, i64 1, ptr null)
  %passed = icmp eq i64 %check, 0
  br i1 %passed, label %done, label %fail
done:
  %result = get ptr %V %root
  call void @commit(ptr %way, ptr %world, ptr %A, ptr %H, ptr %T, ptr %gone)
  ret ptr %result
fail:
  call void @drop(ptr %V, i64 %values)
  call void @PyErr_Clear()
  br label %no
no:
  ret ptr null
}

; What Python calls: with arguments, keyword arguments and what donated tensors hold afterwards.
define ptr @serving(ptr %self, ptr %given, i64 %count) {
start:
  %site = get ptr %self 2
  %world = get ptr %site 0
  %collects = call i32 @PyGC_Disable()
  %result = call ptr @serve(ptr %site, ptr %world, ptr %given)
  %on = icmp ne i32 %collects, 0
  br i1 %on, label %enable, label %look
enable:
  %off = call i32 @PyGC_Enable()
  br label %look
look:
  %served = icmp ne ptr %result, null
  need %served else miss
  ret ptr %result
miss:
  %answer = get ptr %world 6
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
}
"""
