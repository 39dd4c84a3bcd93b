"""Groups on their way between the classic and the consumer protocol, while both kinds of members are in them."""
