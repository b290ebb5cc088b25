"""What changes are read from: a module or folder for each kind of feeds."""
