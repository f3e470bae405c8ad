# SPDX-License-Identifier: GPL-2.0
"""The base kernel and the patch series on it."""
