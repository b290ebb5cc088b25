"""What a table can be loaded as: one module for each shape, and what they share."""
