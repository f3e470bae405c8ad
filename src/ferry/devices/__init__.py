# SPDX-License-Identifier: GPL-2.0
"""Models of DMA engines that QEMU attaches to over vfio-user, so that unmodified drivers run without the hardware.

Each model was written from its Linux driver's source: it is what that driver expects of a device, not what AMD's
hardware does. It copies through the guest's shared memory, and it can fail in each of the ways that dcbm must survive:
see faults.py. A process of its own serves all the models of a boot: see __main__.py.
"""

from __future__ import annotations

FAULTS = "dma-faults.json"
"""In the share: what is to go wrong. The host or the guest writes it, before the boot or at any time in it."""
COUNTERS = "dma-device.json"
"""In the share: what the models did. Written when the guest ends, and on request."""
REQUEST = "dma-report"
"""In the share: its appearance asks for the counters; it is removed once they are written."""
LOG = "dma-device.log"
"""In the share: what the models have to say."""
