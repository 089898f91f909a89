# SPDX-License-Identifier: Apache-2.0
"""The pages that check_docs.py and check_prose.py look at."""

NOT_PAGES = ("build", ".deps", ".git", ".pytest_cache")


def pages(repository):
    """Markdown files of the tree, relative to it."""
    found = []
    for path in sorted(repository.rglob("*.md")):
        relative = path.relative_to(repository)
        if not any(part.startswith(NOT_PAGES) for part in relative.parts[:-1]):
            found.append(relative.as_posix())
    return found
