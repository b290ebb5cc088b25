"""Change data capture as SQL Server does it, without storage and without SQL: LSNs, capture, change tables, jobs."""
