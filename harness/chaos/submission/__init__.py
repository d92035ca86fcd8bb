"""The parts of the chaos run `submit`: the cuts, the wire they happen on, and the clients that are cut."""
