# SPDX-License-Identifier: GPL-2.0
"""Models of DMA engines that QEMU attaches to over vfio-user, so that unmodified drivers run without the hardware.

Each model was written from the source of its Linux driver: it does what that driver expects of a device, which may
differ from the hardware. It copies through the guest's shared memory, and it can fail in each way that dcbm must
survive: see faults.py. One separate process serves all the models of a boot: see __main__.py.
"""

from __future__ import annotations

FAULTS = "dma-faults.json"
"""In the share: the faults to inject. The host or the guest writes it, before the boot or during it."""
COUNTERS = "dma-device.json"
"""In the share: the models' counters. Written when the guest ends, and on request."""
REQUEST = "dma-report"
"""In the share: a request for the counters; the models remove it once these are written."""
LOG = "dma-device.log"
"""In the share: the models' log."""
