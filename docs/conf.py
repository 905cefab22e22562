"""Sphinx configuration. A build draws figures, writes out results and benchmarks, and checks the reference."""

import logging
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import excerpts  # noqa: E402
import figures  # noqa: E402
import gallery  # noqa: E402
import results  # noqa: E402
import vocabulary  # noqa: E402
from sphinx.errors import ConfigError  # noqa: E402

import kernelbayes  # noqa: E402
from benchmarks import _run, _table  # noqa: E402
from benchmarks._rows import ROWS  # noqa: E402

project = "kernelbayes"
author = "The kernelbayes developers"
copyright = author
version = release = kernelbayes.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_build", "generated"]
default_role = "literal"  # single backticks in docstrings are code

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

napoleon_google_docstring = True
napoleon_numpy_docstring = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"kernelbayes {version}"


def check_reference() -> None:
    """Fail the build if a public name is missing from the reference, or documented there but not public."""
    text = (HERE / "reference.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"auto(?:class|function|exception):: kernelbayes\.(\w+)$", text, flags=re.MULTILINE))
    public = set(kernelbayes.__all__)
    missing, unknown = public - documented, documented - public
    if missing:
        raise ConfigError(f"reference.md does not document {', '.join(sorted(missing))}")
    if unknown:
        raise ConfigError(f"reference.md documents what kernelbayes does not have: {', '.join(sorted(unknown))}")


def prepare(app: object) -> None:
    """Run before any page is read."""
    logging.getLogger("jax").setLevel(logging.WARNING)  # it reports which accelerators are not there
    check_reference()
    figures.draw_all(HERE / "generated")
    results.write_all(HERE / "generated")
    vocabulary.write_all(HERE / "generated")
    excerpts.write_all(HERE / "generated")
    gallery.write_all(HERE / "generated")
    table = _table.markdown(list(ROWS.values()), _run.load(_run.RECORD))
    (HERE / "generated" / "benchmarks-results.md").write_text(table, encoding="utf-8")


def list_attributes(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Turn a section "Attributes:" into a list, before napoleon takes names that end in "_" for references."""
    if "Attributes:" not in lines:
        return
    start = lines.index("Attributes:")
    end = next((i for i in range(start + 1, len(lines)) if not lines[i].strip()), len(lines))
    items = []
    for line in lines[start + 1 : end]:
        names, colon, text = line.strip().partition(": ")
        if colon and re.fullmatch(r"\w+(, \w+)*", names):
            items.append(f"- {', '.join(f'``{n}``' for n in names.split(', '))}: {text}")
        else:
            items.append(f"  {line.strip()}")
    lines[start:end] = [".. rubric:: Attributes", "", *items]


def setup(app):
    """Called by Sphinx."""
    app.connect("builder-inited", prepare)
    app.connect("autodoc-process-docstring", list_attributes, priority=400)
