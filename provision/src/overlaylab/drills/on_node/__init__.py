"""What runs on nodes. Standard library alone, of Python 3.11."""
