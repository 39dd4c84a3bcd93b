"""The group of a history: its members as load, what they did, and what their coordinators said to whom."""
