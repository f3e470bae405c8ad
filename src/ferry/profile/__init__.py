# SPDX-License-Identifier: GPL-2.0
"""`ferry profile`: the instructions that a guest executes between two markers, by function and by phase."""
