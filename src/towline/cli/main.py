"""The entry point of the `towline` command."""


def main() -> None:
    """Run the command line."""
    raise SystemExit(0)
