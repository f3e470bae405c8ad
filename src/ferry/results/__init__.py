# SPDX-License-Identifier: GPL-2.0
"""Results: their shape, statistics, files and output."""
