"""``python -m tinkerwire_codegen``: the commands around the contract."""

import sys

from .cli import main

sys.exit(main())
