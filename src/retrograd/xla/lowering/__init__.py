"""The ops as operations of JAX. Importing `retrograd.xla.lowering.all_rules` fills the table."""
