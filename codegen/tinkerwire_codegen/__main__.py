"""``python -m tinkerwire_codegen``: the commands for the contract."""

import sys

from .cli import main

sys.exit(main())
