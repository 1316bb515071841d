"""`torch.nn.parameter`, where some scripts import `Parameter` from: `retrograd.nn.Parameter`."""

from retrograd.nn.module.parameter import Parameter

__all__ = ["Parameter"]
