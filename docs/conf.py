"""The site that `make docs` builds from the pages of this tree; its home is the README.

Pages are plain Markdown that any viewer shows. What only a site needs is added here: the contents
from each index's own links, the figures of each record, and the pages of `written_pages.py`.
"""

import re
import sys
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext import autosummary
from sphinx.util.osutil import relative_uri

sys.path.insert(0, str(Path(__file__).parent))
from written_pages import EXPLORER, ROOT, pictures, write_all

project = "petridish"
author = "the authors of petridish"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/**/*.md",
    "records/*.md",
    "records/**/*.md",
    "examples/*.md",
]
exclude_patterns = [".*", "build", "src", "tests", "native"]
highlight_language = "text"  # blocks without a language are commands
suppress_warnings = ["autosummary.import_cycle"]  # names are written with their room on purpose

default_role = "literal"  # docstrings write `name` as Markdown does
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
autosummary.WELL_KNOWN_ABBREVIATIONS += ("App.", "Ch.", "Fig.", "Thm.")  # end no sentence
autosummary_generate = False  # the tables of the reference lead to the same page
autodoc_default_options = {"members": True}
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # the signatures are in the source; a docstring says what a name is
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "petridish"
html_static_path = ["_static"]
EXPLORER.parent.mkdir(parents=True, exist_ok=True)  # Sphinx asks for it before a page is written
html_extra_path = [str(EXPLORER.parent)]  # one file, beside the pages
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"README": [], "CHANGELOG": [], "CONTRIBUTING": []}
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "show_prev_next": False,
    "navigation_with_keys": False,
}


def write_math(self: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw without a script."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    self.body.append(latex2mathml.converter.convert(node.astext(), display=display))
    raise nodes.SkipNode


# Code and roles, directives, examples, *words* that are stressed.
AS_IT_IS = re.compile(
    r"(`+[^`]+`+_*|^ *\.\. .*?(?=^\S|\Z)|^ *(?:>>>|\.\.\.) .*?$|\*\w(?:[^*\n]*\w)?\*(?!\w))",
    re.M | re.S,
)


def escape_signs(
    app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Escape |S|, a * b and classes_ of a docstring, which Sphinx would read as markup."""
    parts = AS_IT_IS.split("\n".join(lines))
    parts[::2] = [
        re.sub(r"(?<=\w)_(?!\w)|\||(?<!\*)\*(?!\*)", r"\\\g<0>", part) for part in parts[::2]
    ]
    lines[:] = "".join(parts).split("\n")


def leave_out(
    app: Sphinx, kind: str, name: str, thing: object, skip: object, options: object
) -> bool | None:
    """Leave out the methods by which scikit-learn routes metadata, which are its own."""
    return True if re.fullmatch("set_[a-z_]+_request", name) else None


def write_pages(app: Sphinx) -> None:
    """Write what is made at each build, before Sphinx looks for pages."""
    write_all()


def lists_of_records(app: Sphinx, *changed: object) -> list[str]:
    """Return the pages to read anew at every build: what they show may have come or gone."""
    return [name for name in app.env.found_docs if name.startswith("records/")]


def add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the contents that an index lists by its links, and to a record its figures."""
    if docname == "docs/README":  # the same index as the navigation's
        source[0] = f"---\norphan: true\n---\n{source[0]}"
        return
    if docname == "README":
        pages = [f"/docs/{part}/README" for part in ("guides", "reference", "results")]
        pages += ["/CONTRIBUTING", "/CHANGELOG"]
    elif docname == "records/README":
        folders = sorted((ROOT / "records").glob("*/README.md"))
        pages = [f"/records/{readme.parent.name}/README" for readme in folders]
    elif docname.startswith("records/"):
        source[0] += "\n\n" + pictures((ROOT / docname).parent, ".")
        return
    elif docname.startswith("docs/") and docname.endswith("/README"):
        pages = re.findall(r"\]\(([\w./-]+)\.md\)", source[0].split("\n## ")[0])
        pages = [page for page in pages if not page.startswith("..") or "examples" in page]
        pages += {"docs/reference/README": ["api/README"]}.get(docname, [])
        pages += {
            "docs/results/README": ["scoreboard", "where/README", "gallery", "/records/README"]
        }.get(docname, [])
    else:
        return
    listed = "\n".join(dict.fromkeys(pages))  # a table may link to a page more than once
    source[0] += f"\n```{{toctree}}\n:hidden:\n:maxdepth: 2\n\n{listed}\n```\n"


def link_pictures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let a click on a figure show its picture alone, from where the build has copied it to."""
    folder = relative_uri(app.builder.get_target_uri(docname), app.builder.imagedir)
    for image in list(doctree.findall(nodes.image)):
        name = app.env.images.get(image["uri"], ({}, ""))[1]
        if isinstance(image.parent, nodes.figure) and name:
            image.replace_self(nodes.reference("", "", image.deepcopy(), refuri=f"{folder}/{name}"))


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Let the folder itself open at the README."""
    if error is None and app.builder.format == "html":
        page = '<!doctype html><meta http-equiv="refresh" content="0; url=README.html">'
        page += '<a href="README.html">petridish</a>\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", escape_signs, priority=400)  # before numpydoc's
    app.connect("autodoc-skip-member", leave_out)
    app.connect("env-get-outdated", lists_of_records)
    app.connect("source-read", add_contents)
    app.connect("doctree-resolved", link_pictures)
    app.connect("build-finished", write_index)
