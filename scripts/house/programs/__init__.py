"""Programs whose results are compared to the bit between two revisions.

They use the public interface only. What a program does depends on nothing but its name and seed.
"""
