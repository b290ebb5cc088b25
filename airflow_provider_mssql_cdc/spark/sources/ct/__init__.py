"""Tables that Change Tracking tracks, as sources of a load."""
