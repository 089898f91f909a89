#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the pages and the help texts stay short enough to read.

README.md has at most 900 words and docs/ARCHITECTURE.md 1,500, counted as `wc -w` counts. No sentence in a page, or in
the --help of the command and of each of its subcommands, has more than 40 words.

usage: check_prose.py REPOSITORY [GPUPROF] | --self-test
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from markdown_pages import pages

MOST_WORDS = {"README.md": 900, "docs/ARCHITECTURE.md": 1500}
MOST_WORDS_IN_A_SENTENCE = 40
# A sentence ends before a blank, so that "3.12" and "libcudart.so" do not end one.
SENTENCE_END = re.compile(r"[.!?][)\"*_]*\s+(?=[^a-z\s])")
LIST_ITEM = re.compile(r"^\s*([-*]|\d+\.)\s+")


def blocks_of_page(text):
    """(line number, text) of each paragraph, heading, list item and table cell. Code is left out."""
    begin, lines, in_code = 0, [], False

    def flush():
        nonlocal lines
        if lines:
            yield begin, " ".join(lines)
        lines = []

    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            yield from flush()
            in_code = not in_code
        elif in_code:
            continue
        elif stripped.startswith("|"):
            yield from flush()
            for cell in re.split(r"(?<!\\)\|", stripped):
                yield number, cell
        elif not stripped:
            yield from flush()
        else:
            if LIST_ITEM.match(line) or stripped.startswith("#"):
                yield from flush()
            if not lines:
                begin = number
            lines.append(LIST_ITEM.sub("", line).strip())
            if stripped.startswith("#"):
                yield from flush()
    yield from flush()


def blocks_of_help(text):
    """(line number, text) of each paragraph and each row of a help text. Usage lines are left out."""
    begin, lines = 0, []
    for number, line in enumerate(text.splitlines() + [""], 1):
        row = line.startswith("  ")
        if (not line.strip() or row) and lines:
            yield begin, " ".join(lines)
            lines = []
        if line.startswith("Usage:") or not line.strip():
            continue
        if row:
            yield number, re.split(r"\s{2,}", line.strip(), maxsplit=1)[-1]
            continue
        begin = begin if lines else number
        lines.append(line.strip())


def words(text):
    """Words of a sentence: code and links count as what a reader sees of them."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return [word for word in text.split() if re.search(r"\w", word)]


def long_sentences(name, blocks):
    problems = []
    for number, block in blocks:
        for sentence in SENTENCE_END.split(re.sub(r"`[^`]*`", "`c`", block)):
            count = len(words(sentence))
            if count > MOST_WORDS_IN_A_SENTENCE:
                problems.append(f"{name}:{number}: a sentence of {count} words, {MOST_WORDS_IN_A_SENTENCE} are allowed: "
                                f"\"{' '.join(sentence.split()[:8])} ...\"; make two of it")
    return problems


def check_pages(repository):
    problems, found = [], pages(repository)
    for name in found:
        text = (repository / name).read_text(encoding="utf-8")
        problems += long_sentences(name, blocks_of_page(text))
        count, most = len(text.split()), MOST_WORDS.get(name)
        if most is not None and count > most:
            problems.append(f"{name}: {count} words, {most} are allowed; move details to a page of their own")
    for name in MOST_WORDS:
        if name not in found:
            problems.append(f"{name}: not there")
    return len(found), problems


def help_text(gpuprof, *arguments):
    return subprocess.run([gpuprof, *arguments, "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout


def subcommands(text):
    """Names of the commands that `gpuprof --help` lists."""
    return re.findall(r"^  ([a-z]+)\s", text, re.M)


def check_help(gpuprof):
    text = help_text(gpuprof)
    problems = long_sentences("gpuprof --help", blocks_of_help(text))
    names = subcommands(text)
    for name in names:
        problems += long_sentences(f"gpuprof {name} --help", blocks_of_help(help_text(gpuprof, name)))
    if not names:
        problems.append("gpuprof --help lists no command")
    return len(names), problems


LONG = " ".join(["word"] * 41) + "."
SHORT = " ".join(["word"] * 40) + "."
SELF_TEST_PAGES = [  # README.md's text, whether it is a violation
    (SHORT, False),
    (LONG, True),
    (SHORT[:-1] + "\n" + LONG, True),
    (SHORT + " And " + SHORT[5:], False),
    ("```\n" + LONG + "\n```\n", False),
    ("- " + SHORT + "\n- " + SHORT, False),
    ("- one\n- " + LONG, True),
    ("| a | " + LONG + " |", True),
    ("| " + SHORT[:-1] + " | " + SHORT[:-1] + " |", False),
    ("# Heading\n" + SHORT, False),
    ("`" + LONG + "`", False),
    ("Word. " * 899, False),
    ("Word. " * 901, True),
]
SELF_TEST_HELP = [
    ("what it does\n\nUsage: gpuprof x " + LONG + "\n\n  --a  " + SHORT + "\n  --b  " + SHORT + "\n", False),
    ("what it does\n\n  --a  " + LONG + "\n", True),
    ("\nA note that\n" + LONG + "\n", True),
]


def self_test():
    wrong = 0
    for text, violation in SELF_TEST_PAGES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs" / "ARCHITECTURE.md").write_text("A page.\n")
            (root / "README.md").write_text(text)
            _, problems = check_pages(root)
        if bool(problems) != violation:
            print(f"README.md {text[:60]!r}: expected {'a violation' if violation else 'none'}, got {problems}")
            wrong += 1
    for text, violation in SELF_TEST_HELP:
        problems = long_sentences("help", blocks_of_help(text))
        if bool(problems) != violation:
            print(f"help {text[:60]!r}: expected {'a violation' if violation else 'none'}, got {problems}")
            wrong += 1
    print(f"check_prose: self-test, {len(SELF_TEST_PAGES) + len(SELF_TEST_HELP)} cases, {wrong} wrong")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) not in (1, 2):
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    files, problems = check_pages(pathlib.Path(arguments[0]))
    helps = 0
    if len(arguments) == 2:
        helps, of_help = check_help(arguments[1])
        problems += of_help
    print("\n".join(problems + [f"check_prose: {files} pages, {helps} help texts, {len(problems)} violations"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
