"""Training steps on several devices."""
