"""What is built once and kept: node image, boxes, overlay daemons, and the bundle of all of it.

Not here: nodes made of them."""
