"""Native calls: the functions of CPython and NumPy that they use, and where these are."""

from __future__ import annotations

import ctypes
import re

from retrograd.runtime.numpy_api import new_array_address

NEW_ARRAY = "PyArray_NewFromDescr"
DECLARATIONS = """
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyDict_Copy(ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyList_New(i64)
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare ptr @PyBytes_AsString(ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i32 @PyGC_Disable()
declare i32 @PyGC_Enable()
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
"""


def python_symbols() -> dict[str, int]:
    """The addresses of the functions that are called; none if one of them is not there."""
    found = {}
    try:
        for name in re.findall(r"@(\w+)\(", DECLARATIONS):
            if name == NEW_ARRAY:
                found[name] = new_array_address()
                continue
            at = getattr(ctypes.pythonapi, name)
            found[name] = int(ctypes.cast(at, ctypes.c_void_p).value or 0)
    except AttributeError:
        return {}
    return found if all(found.values()) else {}
