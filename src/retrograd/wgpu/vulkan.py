"""Whether there is a GPU, asked of Vulkan's loader itself: that takes a twentieth of the time in
which the package `wgpu` is imported, and lists of backends are asked for where nobody uses it."""

from __future__ import annotations

import ctypes
import sys

LOADER = "libvulkan.so.1"
INSTANCE_CREATE_INFO = 1  # VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO


class _CreateInfo(ctypes.Structure):
    """`VkInstanceCreateInfo`."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("application", ctypes.c_void_p),
        ("layers", ctypes.c_uint32),
        ("layer_names", ctypes.c_void_p),
        ("extensions", ctypes.c_uint32),
        ("extension_names", ctypes.c_void_p),
    )


def devices() -> int | None:
    """How many devices Vulkan has here, lavapipe among them; None where it is not known, as on
    macOS and Windows, whose drivers belong to the system."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        vulkan = ctypes.CDLL(LOADER)
    except OSError:
        return 0
    instance, count = ctypes.c_void_p(), ctypes.c_uint32()
    info = _CreateInfo(type=INSTANCE_CREATE_INFO)
    if vulkan.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance)):
        return 0  # no driver
    failed = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
    vulkan.vkDestroyInstance(instance, None)
    return 0 if failed else count.value
