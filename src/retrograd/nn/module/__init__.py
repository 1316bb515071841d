"""`Module`: parameters, and the function they parametrise, as a pytree."""
