"""The notebooks in `examples/`: their cells stand here, outputs come of running."""
