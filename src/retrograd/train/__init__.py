"""Training loops: recipes, progress, clean stops."""
