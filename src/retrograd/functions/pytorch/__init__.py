"""What PyTorch has under other names than the array API standard, by its names and arguments."""
