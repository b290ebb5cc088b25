"""Change Tracking: versions, the side tables of tracked tables, and what they tell."""
