# SPDX-License-Identifier: GPL-2.0
import sys

from ferry.commands.cli import main

sys.exit(main())
