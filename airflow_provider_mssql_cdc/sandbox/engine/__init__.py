"""The storage: databases in DuckDB, transactions, row images, and the CDC semantics in a pure core."""
