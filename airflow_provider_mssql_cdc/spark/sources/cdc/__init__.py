"""Change data capture: change tables, read in slices in LSN order."""
