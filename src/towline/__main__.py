"""`python -m towline` is the `towline` command."""

import sys

from towline.cli.main import main

sys.exit(main())
