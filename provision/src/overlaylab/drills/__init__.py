"""Drills: a fault put into a healthy overlay, the service measured while somebody repairs it, and what that was worth.

Not here: the faults themselves, which are folders in provision/drills."""
