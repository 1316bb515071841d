"""Native calls, first half: taking arguments apart, and finding the program for their arrays.

In the shorthand of `shorthand.py`. Of an object, word 0 counts its references and 1 is its type; of
a tuple or list 2 is the length and 3 the first item or the address of the items; of an array 2 is
the address of the data, 3 the rank, 4 the address of the sizes, 7 the dtype, 8 the flags; of a
scalar of NumPy 2 starts with its bytes.

`world`: 0 class of arrays, 1 of strings, 2 of tensors, 3 word of a tensor with its array, 4 word
that is null if it has nothing else, 5 None, 6 what is returned by calls that are not served.

`site`: 0 world, 1 table of ways (how many, each), 2 steps, 3 how many, 4 registers, 5 leaves.
"""

TEXT = """
; The values of a dict for n keys, in the order of the keys: 1 if it has them all.
define internal i64 @entries(ptr %dict, i64 %n, ptr %keys, ptr %to, ptr %str) {
start:
  %pos = alloca i64
  %key = alloca ptr
  %value = alloca ptr
  put i64 0 %pos 0
  for %k %n
  %there = call i32 @PyDict_Next(ptr %dict, ptr %pos, ptr %key, ptr %value)
  %any = icmp ne i32 %there, 0
  need %any else bad
  %own = get ptr %key 0
  %want = get ptr %keys %k
  %v = get ptr %value 0
  put ptr %v %to %k
  %same = icmp eq ptr %own, %want
  need %same else other
  end
  br label %good
other:
  ; Another order, or equal keys: searched, if that calls no comparison but that of strings.
  put i64 0 %pos 0
  for %m %n
  %more = call i32 @PyDict_Next(ptr %dict, ptr %pos, ptr %key, ptr %value)
  %each = get ptr %key 0
  %class = get ptr %each 1
  %name = get ptr %keys %m
  %kind = get ptr %name 1
  %plain = icmp eq ptr %class, %str
  %string = icmp eq ptr %kind, %str
  %both = and i1 %plain, %string
  need %both else bad
  end
  for %j %n
  %wanted = get ptr %keys %j
  %item = call ptr @PyDict_GetItemWithError(ptr %dict, ptr %wanted)
  put ptr %item %to %j
  %found = icmp ne ptr %item, null
  need %found else missing
  end
  br label %good
good:
  ret i64 1
missing:
  call void @PyErr_Clear()
  br label %bad
bad:
  ret i64 0
}

; Follows the steps from the objects in the registers %R: 1 if all is as it should be. Arrays, the
; tensors that hold them and the bits of numbers go to %A, %H, %N; a number has no array. A step:
; kind, register, class or object, how many items (of a tensor: whether it is donated), keys.
define internal i64 @walk(ptr %site, ptr %world, ptr %R, ptr %A, ptr %H, ptr %N) {
start:
  %next = alloca i64
  %leaf = alloca i64
  %over = alloca i64
  put i64 2 %next 0
  put i64 0 %leaf 0
  %steps = get ptr %site 2
  %count = get i64 %site 3
  %ndarray = get ptr %world 0
  %str = get ptr %world 1
  %slot = get i64 %world 3
  %form = get i64 %world 4
  for %k %count
  %step = row %steps %k 5
  %kind = get i64 %step 0
  %from = get i64 %step 1
  %want = get ptr %step 2
  %n = get i64 %step 3
  %x = get ptr %R %from
  %at = get i64 %next 0
  %to = getelementptr i64, ptr %R, i64 %at
  %i = get i64 %leaf 0
  %fixed = icmp eq i64 %kind, 0
  %class = get ptr %x 1
  %seen = select i1 %fixed, ptr %x, ptr %class
  %right = icmp eq ptr %seen, %want
  need %right else bad
  switch i64 %kind, label %on [
    i64 1, label %tuple
    i64 2, label %list
    i64 3, label %dict
    i64 4, label %tensor
    i64 5, label %own
    i64 6, label %float
    i64 7, label %int
    i64 8, label %scalar
  ]
tuple:
  %inside = getelementptr i64, ptr %x, i64 3
  br label %sequence
list:
  %outside = get ptr %x 3
  br label %sequence
sequence:
  %items = phi ptr [ %inside, %tuple ], [ %outside, %list ]
  %length = get i64 %x 2
  %sized = icmp eq i64 %length, %n
  need %sized else bad
  call void @copy(ptr %items, ptr %to, i64 %n)
  br label %taken
dict:
  %size = call i64 @PyDict_Size(ptr %x)
  %full = icmp eq i64 %size, %n
  need %full else bad
  %keys = get ptr %step 4
  %had = call i64 @entries(ptr %x, i64 %n, ptr %keys, ptr %to, ptr %str)
  %has = icmp ne i64 %had, 0
  need %has else bad
  br label %taken
taken:
  %after = add i64 %at, %n
  put i64 %after %next 0
  br label %on
tensor:
  ; One that is donated must be no more than its array.
  %more = get ptr %x %form
  %bare = icmp eq ptr %more, null
  %kept = icmp eq i64 %n, 0
  %either = or i1 %bare, %kept
  need %either else bad
  put ptr %x %H %i
  %ready = get ptr %x %slot
  %full.slot = icmp ne ptr %ready, null
  br i1 %full.slot, label %held, label %bad
own:
  br label %array
held:
  br label %array
array:
  %a = phi ptr [ %x, %own ], [ %ready, %held ]
  %its = get ptr %a 1
  %is = icmp eq ptr %its, %ndarray
  put ptr %a %A %i
  need %is else bad
  br label %found
float:
  %f = call double @PyFloat_AsDouble(ptr %x)
  put double %f %N %i
  put ptr null %A %i
  br label %found
int:
  %m = call i64 @PyLong_AsLongLongAndOverflow(ptr %x, ptr %over)
  put i64 %m %N %i
  put ptr null %A %i
  %beyond = get i32 %over 0
  %within = icmp eq i32 %beyond, 0
  need %within else bad
  br label %found
scalar:
  %bits = get i64 %x 2
  put i64 %bits %N %i
  put ptr null %A %i
  br label %found
found:
  %i.more = add i64 %i, 1
  put i64 %i.more %leaf 0
  br label %on
on:
  end
  ret i64 1
bad:
  ret i64 0
}

; Adds to the references of the arrays that there are, so that one that comes twice is seen to.
define internal void @hold(ptr %A, i64 %n, i32 %by) {
start:
  for %k %n
  %a = get ptr %A %k
  %none = icmp eq ptr %a, null
  skip %none
  %count = get i32 %a 0
  %sum = add i32 %count, %by
  put i32 %sum %a 0
  end
  ret void
}

; The first way that the arrays fit, or null. Its words 0 and 1 are a table and how many rows that
; has: which array, dtype, rank, flags it must have, the most references to it, its sizes.
define internal ptr @choose(ptr %site, ptr %A) {
start:
  %table = get ptr %site 1
  %ways = get i64 %table 0
  %list = getelementptr i64, ptr %table, i64 1
  for %w %ways
  %way = get ptr %list %w
  %rows = get ptr %way 0
  %n = get i64 %way 1
  for %k %n
  %r = row %rows %k 6
  %which = get i64 %r 0
  %a = get ptr %A %which
  %dtype = get ptr %a 7
  %dtype.want = get ptr %r 1
  %dtype.ok = icmp eq ptr %dtype, %dtype.want
  %rank = get i32 %a 3
  %rank.want = get i32 %r 2
  %rank.ok = icmp eq i32 %rank, %rank.want
  %flags = get i32 %a 8
  %flags.want = get i32 %r 3
  %needed = and i32 %flags, %flags.want
  %flags.ok = icmp eq i32 %needed, %flags.want
  %refs = get i32 %a 0
  %most = get i32 %r 4
  %refs.ok = icmp ule i32 %refs, %most
  %both = and i1 %dtype.ok, %rank.ok
  %three = and i1 %both, %flags.ok
  %all = and i1 %three, %refs.ok
  need %all else another
  %sizes = get ptr %a 4
  %sizes.want = get ptr %r 5
  %axes = zext i32 %rank to i64
  for %i %axes
  %m = get i64 %sizes %i
  %m.want = get i64 %sizes.want %i
  %m.ok = icmp eq i64 %m, %m.want
  need %m.ok else another
  end
  end
  ret ptr %way
another:
  end
  ret ptr null
}

define internal void @copy(ptr %from, ptr %to, i64 %n) {
start:
  for %k %n
  %x = get i64 %from %k
  put i64 %x %to %k
  end
  ret void
}
"""
