"""The documentation site: `make site`, or `python -m scripts.site`."""
