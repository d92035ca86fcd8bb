"""Finding out what keeps a cluster from being used, and mending what can be mended safely.

Facts are gathered in one or two round trips per login host (`gather`, `deep`). Checks are pure functions from facts to
findings; `checks.CHECKS` has them all, in the order in which a person would look.
"""
