# SPDX-License-Identifier: GPL-2.0
"""How the overlay's comments and functions read, compared with the kernel's own.

Kernel comments name the actor as the subject of a sentence and use the field's terms. Sentences that start with who or
what, and metaphors, are counted; the limits are several times what mm/damon, hugetlb_vmemmap or padata have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MOST_OPENINGS = 0.005
"""Share of the sentences that may start with a word of _OPENINGS."""
_OPENINGS = re.compile(r"(?:who|whoever|whose|what|whatever|whichever|nobody|no one|none|somebody|someone|anybody|"
                       r"anyone|everybody)\b", re.IGNORECASE)
COUNTED = {
    "who, whoever": (r"who|whoever|whom", 1.0),
    "what is/was/it/they/a/the": (r"what (?:is|was|it|they|a|the)", 3.0),
    "nobody, somebody": (r"nobody|somebody|anybody|no one", 1.0),
    "owe, debt, pay, price, dear": (r"ow(?:e|es|ed|ing)|debts?|pa(?:y|ys|id|ying)|prices?|dear(?:er|est)?", 1.0),
    "as ever, anew, mend, meanwhile": (r"as ever|anew|afresh|mend\w*|meanwhile", 1.0),
}
"""Words, and how often they may occur in 10,000."""


@dataclass
class Figures:
    """Counts over some texts, and the sentences that count against a limit, each with its file."""

    words: int = 0
    sentences: int = 0
    openings: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    found: list[str] = field(default_factory=list)


def comments(text: str) -> str:
    """The text of a C file's comments but its licence line, an empty line between any two."""
    blocks = re.findall(r"/\*.*?\*/|(?:^[ \t]*//[^\n]*\n)+", text, re.DOTALL | re.MULTILINE)
    return "\n\n".join(re.sub(r"^\s*(?:/\*\*?|\*/|//|\*)?[ \t]?|\*/$", "", block, flags=re.MULTILINE)
                       for block in blocks if "SPDX" not in block)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text; a list's items and kernel-doc's descriptions of arguments each begin one."""
    for paragraph in re.split(r"\n\s*\n|\n\s*(?=[-*|#@] ?)", text):
        flat = re.sub(r"\s+", " ", paragraph).strip(" -*|#")
        flat = re.sub(r"^(?:DOC: [^.]*|@?\w+(?:\(\))?:|\w+\(\) -)\s", "", flat)
        for sentence in re.split(r"(?<=[.?!;:])\s+", flat):
            if len(re.findall(r"[A-Za-z]{2,}", sentence)) > 1:
                yield sentence


def measure(texts: Mapping[str, str]) -> Figures:
    """Count in the texts, given by their files' names."""
    figures = Figures()
    for name, text in texts.items():
        figures.words += len(re.findall(r"[A-Za-z][\w'/-]*", text))
        for sentence in sentences(text):
            figures.sentences += 1
            figures.openings += bool(_OPENINGS.match(sentence))
            hits = {word: len(re.findall(rf"\b(?:{pattern})\b", sentence, re.IGNORECASE))
                    for word, (pattern, _) in COUNTED.items()}
            for word, count in hits.items():
                figures.counts[word] += count
            if any(hits.values()) or _OPENINGS.match(sentence):
                figures.found.append(f"{name}: {sentence[:100]}")
    return figures


def exceeded(figures: Figures) -> Iterator[str]:
    """The limits that the texts exceed, then the sentences that count against one."""
    wrong = []
    if figures.openings > MOST_OPENINGS * figures.sentences:
        wrong.append(f"{figures.openings} of {figures.sentences} sentences start with who, what or nobody")
    for word, (_, most) in COUNTED.items():
        if figures.counts[word] * 10_000 > most * figures.words:
            wrong.append(f"{figures.counts[word]} times {word} in {figures.words} words, at most {most:g} in 10,000")
    yield from [*wrong, *(figures.found if wrong else ())]


def describe(figures: Figures) -> str:
    return (f"{figures.words} words, {figures.words / max(figures.sentences, 1):.1f} a sentence, "
            f"{len(figures.found)} sentences counted")


def of_overlay(overlay: Mapping[str, Path]) -> Figures:
    """The comments of C files and the text of documents."""
    texts = {name: path.read_text() for name, path in overlay.items() if path.suffix in (".c", ".h", ".rst")}
    return measure({name: text if name.endswith(".rst") else comments(text) for name, text in texts.items()})


def called_once(texts: Iterable[str]) -> tuple[int, int]:
    """How many static functions of C files are called once and named nowhere else, and how many there are."""
    once = total = 0
    for text in texts:
        bare = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        for name in re.findall(r"^static [^;{}()]*?(\w+)\([^;{}]*\)\s*\{", bare, re.MULTILINE):
            total += 1
            rest = re.sub(rf"^static[^;{{}}]*\b{name}\([^;{{}}]*\)\s*[;{{]", "", bare, flags=re.MULTILINE)
            mentions = re.findall(rf"\b{name}\b(\s*\()?", rest)
            once += len(mentions) == 1 and mentions[0] != ""
    return once, total
