"""Certificates of rules: what evidence there is that a derivative is right."""
