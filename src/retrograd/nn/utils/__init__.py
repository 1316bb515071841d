"""What PyTorch keeps in `torch.nn.utils` and the rest of this library has no place for."""

from retrograd.nn.utils import rnn

__all__ = ["rnn"]
