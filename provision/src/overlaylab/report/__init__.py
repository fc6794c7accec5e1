"""Tables, pages and files for people and for the viewer.

Not here: the numbers in them."""
