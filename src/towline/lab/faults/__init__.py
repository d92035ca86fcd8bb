"""What can go wrong on the lab, on command. `registry.FAULTS` has them, `switch` turns them on and off."""
