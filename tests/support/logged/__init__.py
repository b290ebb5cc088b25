"""A second source: a table beside each table says which keys changed at which version; values are those of now."""
