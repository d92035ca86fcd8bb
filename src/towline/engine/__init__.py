"""The decisions: plan, stage, submit, observe, heal; the store and the diagnosis."""
