# SPDX-License-Identifier: GPL-2.0
"""`python3 -m ferry.control`: the verbs of the machine itself, without the tool's Python environment."""

from __future__ import annotations

import argparse
import os
import sys

from ferry.control import verbs
from ferry.errors import INTERRUPTED, FerryError, interrupt_on_signals, report


def main() -> int:
    """Exit statuses are those of `ferry`."""
    interrupt_on_signals()
    parser = argparse.ArgumentParser(prog="python3 -m ferry.control",
                                     description="Show, set, save and restore the settings of page migration.")
    sub = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    verbs.add_actions(sub)
    verbs.add_metrics(sub)
    args = parser.parse_args()
    try:
        status = verbs.run(args)
        sys.stdout.flush()
        return status
    except FerryError as error:
        report(error)
        return error.status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        report(FerryError(f"{error.filename or 'standard output'}: {error.strerror}"))
        return FerryError.status
    except KeyboardInterrupt:
        return INTERRUPTED


sys.exit(main())
