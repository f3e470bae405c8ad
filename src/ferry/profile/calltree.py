# SPDX-License-Identifier: GPL-2.0
"""A call tree from the blocks that were executed, in order.

The tree follows calls and returns: a return goes to the caller whose call it follows, a jump into another function is a
tail call. An interrupt begins a tree of its own; at its end the interrupted function goes on. All tasks switch to
another one in the same function, so a switch shows at the first return after it to a caller that the task did not come
from. Any other return to an unknown caller is that of a task whose calls were not recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ferry.profile.trace import USER, Block, Blocks, Stretch, Window

_SYSCALL = "entry_SYSCALL_64"
_SWITCH = "__switch_to_asm"
_INTERRUPTS = ("asm_", "irq_entries", "spurious_entries")
LOST = "unknown caller"
#: Other tasks' stacks that are remembered.
_TASKS = 32
#: A return looks for its call no deeper than this.
_DEEPEST = 64


@dataclass
class Node:
    """A function as it was called from its parents. `insns` are its own, without those of its children."""

    function: str
    insns: int = 0
    calls: int = 0
    children: dict[str, Node] = field(default_factory=dict)

    def child(self, function: str) -> Node:
        """The node of a function that this one calls, made if it is the first time."""
        if function not in self.children:
            self.children[function] = Node(function)
        return self.children[function]

    def total(self) -> int:
        """Its instructions with those of all that it called."""
        return self.insns + sum(child.total() for child in self.children.values())

    def total_of(self, function: str) -> int:
        """The instructions of all calls of a function in this one, each with those of all that it called."""
        if self.function == function:
            return self.total()
        return sum(child.total_of(function) for child in self.children.values())

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
        """Every node with the functions that lead to it, itself the last one."""
        here = (*path, self.function)
        yield here, self
        for child in self.children.values():
            yield from child.walk(here)


#: A block that leads to no other one.
_NONE = Block("", False, 0, 0, 0, "other")


@dataclass(frozen=True)
class _Frame:
    """A call that has not returned. An interrupt has no `returns_to`: it came after the block `then`."""

    node: Node
    returns_to: int | None
    then: Block = _NONE


class _Builder:
    def __init__(self, root: Node) -> None:
        self._root = root
        self._node = root.child(USER)
        self._stack: list[_Frame] = []
        self._sleeping: list[list[_Frame]] = []
        self._last = _NONE
        self._switched = False

    def add(self, stretch: Stretch) -> None:
        """Count a stretch for the function that it belongs to now. User space is one function."""
        block, last = stretch.first, stretch.last
        if block.function == USER == self._node.function:
            self._last = last
            self._node.insns += stretch.insns
            return
        if self._last.kind in ("iret", "sysret"):
            self._resume()
        # A block that goes on within itself had stopped before its end, at a fault or at a device.
        went_on = self._last.address <= block.address < self._last.next_address
        kind = "other" if went_on else self._last.kind
        if block.is_entry and block.function.startswith((_SYSCALL, *_INTERRUPTS)):
            self._interrupt(block.function)
        elif kind == "call":
            self._stack.append(_Frame(self._node, self._last.next_address))
            self._switched |= block.function == _SWITCH
            self._enter(self._node.child(block.function))
        elif kind == "ret":
            self._return(block)
        elif block.function != self._node.function:
            self._enter(self._node.child(block.function))
        self._node.insns += stretch.insns
        self._last = last

    def _enter(self, node: Node) -> None:
        self._node = node
        node.calls += 1

    def _interrupt(self, function: str) -> None:
        is_syscall = function.startswith(_SYSCALL)
        then = _NONE if self._last.kind == "syscall" else self._last
        self._stack.append(_Frame(self._node, None, then))
        self._enter((self._node if is_syscall else self._root).child(function))

    def _resume(self) -> None:
        """Go back to what the interrupt or the system call interrupted, if that was recorded."""
        self._last = _NONE
        for depth in reversed(range(len(self._stack))):
            frame = self._stack[depth]
            if frame.returns_to is None:
                self._node, self._last = frame.node, frame.then
                del self._stack[depth:]
                return

    def _return(self, block: Block) -> None:
        if self._return_in(self._stack, block.address):
            return
        sleeping = [*[self._stack] * bool(self._stack), *self._sleeping]
        found = next((stack for stack in sleeping if self._switched and self._return_in(stack, block.address)), None)
        self._switched = False
        self._stack = [] if found is None else found
        self._sleeping = [stack for stack in sleeping if stack is not found][:_TASKS]
        if found is None:
            self._enter(self._root.child(LOST).child(block.function))

    def _return_in(self, stack: list[_Frame], address: int) -> bool:
        """Go back to the caller in this stack that goes on at `address`; False if there is none."""
        for depth in reversed(range(max(0, len(stack) - _DEEPEST), len(stack))):
            if stack[depth].returns_to == address:
                self._node = stack[depth].node
                del stack[depth:]
                return True
        return False


def build(windows: Iterable[Window], blocks: Blocks) -> Node:
    """One tree of all windows. Each of them starts in user space."""
    root = Node("all")
    for window in windows:
        builder = _Builder(root)
        for stretch in blocks.stretches(window):
            builder.add(stretch)
    return root
