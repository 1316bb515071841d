"""The command `retrograd`."""
