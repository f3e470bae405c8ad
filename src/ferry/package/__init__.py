# SPDX-License-Identifier: GPL-2.0
"""Debian packages of the kernel, of the tool and of the guest programs."""
