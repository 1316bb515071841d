"""Programs that run graphs: compiling, caching, calling, threads, and backends by name."""
