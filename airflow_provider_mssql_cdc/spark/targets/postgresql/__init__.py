"""PostgreSQL tables as targets: what is written, how it travels, and what can go wrong."""
