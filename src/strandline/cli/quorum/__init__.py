"""The quorum of controllers: its leader, voters and observers, and changing the voters."""
