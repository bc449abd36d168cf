"""``python -m tinkerwire``: the command line."""

import sys

from ._cli.entry import main

sys.exit(main())
