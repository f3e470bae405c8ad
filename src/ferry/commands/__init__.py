# SPDX-License-Identifier: GPL-2.0
"""The command line: one module a verb."""
