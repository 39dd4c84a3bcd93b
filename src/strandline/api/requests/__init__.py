"""A request on the way to its reply, whichever API it is of: refused, worked on in slices, forwarded, counted."""
