# SPDX-License-Identifier: Apache-2.0
"""The pages that check_docs.py and check_prose.py look at."""
import os
import pathlib

NOT_PAGES = ("build", ".deps", ".git", ".pytest_cache")


def pages(repository):
    """Markdown files of the tree, relative to it."""
    found = []
    for place, folders, files in os.walk(repository):
        folders[:] = [folder for folder in folders if not folder.startswith(NOT_PAGES)]  # nor does it enter them
        relative = pathlib.Path(place).relative_to(repository)
        found += [(relative / name).as_posix() for name in files if name.endswith(".md")]
    return sorted(found)
