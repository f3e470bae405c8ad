# SPDX-License-Identifier: GPL-2.0
"""The control files of the running kernel. Everything here runs with Python's standard library alone."""
