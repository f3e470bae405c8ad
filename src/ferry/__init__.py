# SPDX-License-Identifier: GPL-2.0
"""Folio Ferry: builds, boots, measures, tests and exports batched folio copy for Linux page migration."""

__version__ = "0.1.0"
"""The only place of the version; CHANGELOG.md has an entry for each."""
