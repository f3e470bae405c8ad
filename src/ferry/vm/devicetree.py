# SPDX-License-Identifier: GPL-2.0
"""The device tree of the zcu102 board: the part of QEMU's xlnx-zcu102 that the guests use, as two memory nodes.

The kernel's own tree for this board needs firmware that QEMU lacks: drivers ask it for every clock. In this tree each
clock is fixed, so the real drivers work without the firmware. The hardware has no nodes: the board description assigns
CPUs, memory and DMA engines to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ferry import proc
from ferry.boards import Board
from ferry.errors import InfraError, UsageError

MIB = 1 << 20
DISTANCE = {True: 10, False: 20}
"""To itself, to the other node, as on a machine with two sockets."""
LOW_MIB = 2048
"""Memory from address 0 on; the rest of a machine's memory begins at HIGH."""
HIGH = 0x8_0000_0000
UARTS = ((0xFF000000, 21), (0xFF010000, 22))
"""Addresses and interrupts (SPI) of the console and of the line that carries the results."""


@dataclass(frozen=True)
class Engine:
    """One zynqmp_dma: one channel. Its interrupt is an SPI."""

    address: int
    interrupt: int
    bus_bits: int


ENGINES = (
    *(Engine(0xFD500000 + 0x10000 * number, 124 + number, 128) for number in range(8)),
    *(Engine(0xFFA80000 + 0x10000 * number, 77 + number, 64) for number in range(8)),
)
"""Eight in the full-power domain, eight in the low-power domain."""

_HEAD = """\
/dts-v1/;
/ {
	#address-cells = <2>;
	#size-cells = <2>;
	compatible = "xlnx,zynqmp-zcu102", "xlnx,zynqmp";
	model = "Folio Ferry zcu102";
	chosen { stdout-path = "serial0:115200n8"; };
	aliases { serial0 = &uart0; serial1 = &uart1; };
	psci { compatible = "arm,psci-0.2"; method = "smc"; };
	clk: clock { compatible = "fixed-clock"; #clock-cells = <0>; clock-frequency = <100000000>; };
	timer {
		compatible = "arm,armv8-timer";
		interrupt-parent = <&gic>;
		interrupts = <1 13 0xf08>, <1 14 0xf08>, <1 11 0xf08>, <1 10 0xf08>;
	};
	gic: interrupt-controller@f9010000 {
		compatible = "arm,gic-400";
		#address-cells = <0>;
		#interrupt-cells = <3>;
		interrupt-controller;
		reg = <0x0 0xf9010000 0x0 0x10000>, <0x0 0xf9020000 0x0 0x20000>,
			<0x0 0xf9040000 0x0 0x20000>, <0x0 0xf9060000 0x0 0x20000>;
		interrupt-parent = <&gic>;
		interrupts = <1 9 0xf04>;
	};
"""


def source(board: Board) -> str:
    """The tree of a board whose CPUs, memory and engines are split between its nodes."""
    nodes = len(board.nodes)
    return "".join([_HEAD, *_memory(board), _added(board), _distances(nodes), *_cpus(board), *_bus(nodes), "};\n"])


def machine_mib(board: Board) -> int:
    """The memory of QEMU's machine, such that the memory to add at run time begins at HIGH."""
    return LOW_MIB + board.added_mib if board.added_mib else board.memory_mib


def compile_to(board: Board, out: Path) -> None:
    """Compile the board's tree with dtc. Raises InfraError with the error of dtc."""
    text = out.with_suffix(".dts")
    text.write_text(source(board))
    log = out.with_suffix(".log")
    if proc.run(["dtc", "-I", "dts", "-O", "dtb", "-o", out, text], log=log).status:
        raise InfraError(f"dtc rejects the device tree of {board.name}: {log.read_text().strip()[-300:]}", log=log)


def _memory(board: Board) -> Iterator[str]:
    """One node a memory node, from address 0 on.

    Their names must not start with "memory": QEMU takes such nodes out and puts one of its own in, which has all of the
    memory and says nothing of nodes.
    """
    start = 0
    for number, node in enumerate(board.nodes):
        size = node.memory_mib * MIB
        yield (f'\tram@{start:x} {{ device_type = "memory"; reg = <{_pair(start)} {_pair(size)}>; '
               f"numa-node-id = <{number}>; }};\n")
        start += size


def _added(board: Board) -> str:
    """Memory that belongs to no node until a driver adds it to the last one; see machine_mib()."""
    if not board.added_mib:
        return ""
    if board.memory_mib > LOW_MIB:
        raise UsageError(f"{board.name}: added_mib needs nodes of {LOW_MIB} MiB together at most, "
                         f"not {board.memory_mib}")
    return (f'\tpmem@{HIGH:x} {{ compatible = "pmem-region"; volatile; reg = <{_pair(HIGH)} '
            f"{_pair(board.added_mib * MIB)}>; numa-node-id = <{len(board.nodes) - 1}>; }};\n")


def _distances(nodes: int) -> str:
    pairs = [(one, other) for one in range(nodes) for other in range(one, nodes)]
    matrix = ", ".join(f"<{one} {other} {DISTANCE[one == other]}>" for one, other in pairs)
    return f'\tdistance-map {{ compatible = "numa-distance-map-v1"; distance-matrix = {matrix}; }};\n'


def _cpus(board: Board) -> Iterator[str]:
    yield "\tcpus {\n\t\t#address-cells = <1>;\n\t\t#size-cells = <0>;\n"
    for number, node in enumerate(board.nodes):
        for cpu in cpu_numbers(node.cpus):
            yield (f'\t\tcpu@{cpu:x} {{ device_type = "cpu"; compatible = "arm,cortex-a53"; enable-method = "psci"; '
                   f"reg = <{cpu}>; numa-node-id = <{number}>; }};\n")
    yield "\t};\n"


def cpu_numbers(text: str) -> list[int]:
    """CPUs in QEMU's syntax: "0-1" is 0 and 1, "" none."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1)) if text else []


def _bus(nodes: int) -> Iterator[str]:
    """Serial lines, and the engines in as many consecutive groups as there are nodes."""
    yield '\taxi {\n\t\tcompatible = "simple-bus";\n\t\t#address-cells = <2>;\n\t\t#size-cells = <2>;\n'
    yield "\t\tranges;\n\t\tinterrupt-parent = <&gic>;\n"
    for number, (address, interrupt) in enumerate(UARTS):
        yield (f"\t\tuart{number}: serial@{address:x} {{\n"
               '\t\t\tcompatible = "xlnx,zynqmp-uart", "cdns,uart-r1p12";\n'
               f"\t\t\treg = <{_pair(address)} 0x0 0x1000>;\n\t\t\tinterrupts = <0 {interrupt} 4>;\n"
               '\t\t\tclocks = <&clk>, <&clk>;\n\t\t\tclock-names = "uart_clk", "pclk";\n\t\t};\n')
    for number, engine in enumerate(ENGINES):
        yield _engine(engine, number * nodes // len(ENGINES))
    yield "\t};\n"


def _engine(engine: Engine, node: int) -> str:
    """Coherent, unlike the chip's engines by default: QEMU copies within the memory that the CPUs see."""
    return (f"\t\tdma-controller@{engine.address:x} {{\n"
            '\t\t\tcompatible = "xlnx,zynqmp-dma-1.0";\n'
            f"\t\t\treg = <{_pair(engine.address)} 0x0 0x1000>;\n\t\t\tinterrupts = <0 {engine.interrupt} 4>;\n"
            '\t\t\tclocks = <&clk>, <&clk>;\n\t\t\tclock-names = "clk_main", "clk_apb";\n'
            f"\t\t\t#dma-cells = <1>;\n\t\t\txlnx,bus-width = <{engine.bus_bits}>;\n"
            f"\t\t\tdma-coherent;\n\t\t\tnuma-node-id = <{node}>;\n\t\t}};\n")


def _pair(number: int) -> str:
    """A 64-bit number as the two cells that hold it."""
    return f"{number >> 32:#x} {number & 0xFFFFFFFF:#x}"
