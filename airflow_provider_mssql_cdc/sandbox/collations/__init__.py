"""How texts compare: collations, their weights, and what DuckDB compares in their place."""
