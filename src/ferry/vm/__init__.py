# SPDX-License-Identifier: GPL-2.0
"""Booting a kernel on a board."""
