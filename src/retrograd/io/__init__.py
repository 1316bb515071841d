"""Files: tensors, checkpoints. Writing is atomic; a damaged file is a `FormatError` that says what
is wrong and where."""

from retrograd.files import read_bytes, write_atomically
from retrograd.io.checkpoint import (
    load_checkpoint,
    read_checkpoint_header,
    save_checkpoint,
    structured,
)
from retrograd.io.manager import CheckpointManager
from retrograd.io.safetensors import load_safetensors, read_metadata, save_safetensors

__all__ = [
    "CheckpointManager",
    "load_checkpoint",
    "load_safetensors",
    "read_bytes",
    "read_checkpoint_header",
    "read_metadata",
    "save_checkpoint",
    "save_safetensors",
    "structured",
    "write_atomically",
]
