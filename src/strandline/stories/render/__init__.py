"""How a played story looks: in a terminal, as a picture, as a page. All from frames only."""
