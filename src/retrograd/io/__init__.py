"""Files: tensors in several formats, checkpoints. Writing is atomic; a damaged file is a
`FormatError` that says what is wrong and where."""

from typing import TYPE_CHECKING

from retrograd.files import read_bytes, write_atomically
from retrograd.io.checkpoint import (
    load_checkpoint,
    read_checkpoint_header,
    save_checkpoint,
    structured,
)
from retrograd.io.manager import CheckpointManager
from retrograd.io.npz import load_npz, save_npz
from retrograd.io.pytorch import load_pytorch, save_pytorch
from retrograd.io.safetensors import (
    load_safetensors,
    map_safetensors,
    read_metadata,
    save_safetensors,
)
from retrograd.io.weights import load_weights, save_weights
from retrograd.lazy_import import attach as _attach

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "CheckpointManager",
    "load_checkpoint",
    "load_npz",
    "load_pytorch",
    "load_safetensors",
    "load_weights",
    "map_safetensors",
    "read_bytes",
    "read_checkpoint_header",
    "read_metadata",
    "save_checkpoint",
    "save_npz",
    "save_pytorch",
    "save_safetensors",
    "save_weights",
    "structured",
    "write_atomically",
]
