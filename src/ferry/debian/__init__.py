# SPDX-License-Identifier: GPL-2.0
"""Debian packages: fetched, verified and unpacked, or installed."""
