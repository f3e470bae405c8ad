# SPDX-License-Identifier: GPL-2.0
"""A call tree from the blocks that were executed, in order.

The tree follows calls and returns: a return goes to the caller whose call it follows, a jump into another function is a
tail call. An interrupt begins a tree of its own; at its end the interrupted function goes on. All tasks switch to
another one in the same function, so a switch shows at the first return to a caller that the task did not come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ferry.profile.trace import USER, Block, Blocks, Stretch, Window

_SYSCALL = "entry_SYSCALL_64"
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


@dataclass(frozen=True)
class _Frame:
    """A call that has not returned. An interrupt has no `returns_to`: what goes on after it is `then`."""

    node: Node
    returns_to: int | None
    then: tuple[str, int] = ("other", 0)


class _Builder:
    def __init__(self, root: Node) -> None:
        self._root = root
        self._node = root.child(USER)
        self._stack: list[_Frame] = []
        self._sleeping: list[list[_Frame]] = []
        self._last = ("other", 0)

    def add(self, stretch: Stretch) -> None:
        """Count a stretch for the function that it belongs to now. User space is one function."""
        block, last = stretch.first, stretch.last
        if block.function == USER == self._node.function:
            self._last = last.kind if last.kind == "syscall" else "other", last.next_address
            self._node.insns += stretch.insns
            return
        if self._last[0] in ("iret", "sysret"):
            self._resume()
        kind, next_address = self._last
        if block.is_entry and block.function.startswith((_SYSCALL, *_INTERRUPTS)):
            self._interrupt(block.function)
        elif kind == "call":
            self._stack.append(_Frame(self._node, next_address))
            self._enter(self._node.child(block.function))
        elif kind == "ret":
            self._return(block)
        elif block.function != self._node.function:
            self._enter(self._node.child(block.function))
        self._node.insns += stretch.insns
        self._last = last.kind, last.next_address

    def _enter(self, node: Node) -> None:
        self._node = node
        node.calls += 1

    def _interrupt(self, function: str) -> None:
        is_syscall = function.startswith(_SYSCALL)
        then = ("other", 0) if self._last[0] == "syscall" else self._last
        self._stack.append(_Frame(self._node, None, then))
        self._enter((self._node if is_syscall else self._root).child(function))

    def _resume(self) -> None:
        """Go back to what the interrupt or the system call interrupted, if that was recorded."""
        self._last = ("other", 0)
        for depth in reversed(range(len(self._stack))):
            frame = self._stack[depth]
            if frame.returns_to is None:
                self._node, self._last = frame.node, frame.then
                del self._stack[depth:]
                return

    def _return(self, block: Block) -> None:
        if self._return_in(self._stack, block.address):
            return
        sleeping, self._sleeping = [self._stack, *self._sleeping], []
        for number, stack in enumerate(sleeping):
            if self._return_in(stack, block.address):
                self._stack = stack
                self._sleeping = [*sleeping[:number], *sleeping[number + 1:]]
                return
        self._stack, self._sleeping = [], sleeping[:_TASKS]
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
