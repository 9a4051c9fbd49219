"""HTML pages: one base template and one style sheet. Nothing in a page is fetched."""

from __future__ import annotations

import base64
import datetime
import io
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from petridish import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST_SVG = 500_000  # characters; a figure of more, with hundreds of curves, becomes a PNG
Box = tuple[float, float, float, float]  # left, top, width, height, in points


def render(template: str, **values: Any) -> str:
    """Return the page that `templates/<template>` makes of values; their text is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("petridish.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = "{:,}".format
    environment.filters["share"] = percent
    return environment.get_template(template).render(today=datetime.date.today(), **values)


def percent(share: float) -> str:
    """Write a share: 0.123 is 12.3 %."""
    return f"{100 * share:.1f} %"


def versions(*libraries: str) -> dict[str, str]:
    """Return the versions of petridish, Python and those of some libraries that are installed."""
    found = {"petridish": __version__, "python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # LightGBM and XGBoost need not be there
            continue
    return found


@dataclass(frozen=True)
class Picture:
    """A figure in a page, its caption as text.

    Attributes
    ----------
    name, title, note : str
        Its id in the page, and the two parts of its caption.
    width, height : float
        In points.
    content : str
        What the picture holds, as one SVG element with the id `name`.
    panels : tuple of (Box, Box or None)
        Where its panels lie, if there are several: they stack where a screen is narrow. Beside
        each, where the labels of a vertical axis lie that it shares with a panel to its left.
    """

    name: str
    title: str
    note: str
    width: float
    height: float
    content: str
    panels: tuple[tuple[Box, Box | None], ...]


def picture(figure: Figure, name: str) -> Picture:
    """Return a figure for a page, without the caption that `figures.style.caption` has drawn."""
    from markupsafe import Markup

    from petridish.figures.style import as_figure, house_style

    figure = as_figure(figure)
    title, note = (_line(text) for text in (figure.get_suptitle(), figure.get_supxlabel()))
    figure.suptitle("")
    figure.supxlabel("")
    text, pixels = io.StringIO(), io.BytesIO()
    with house_style():
        figure.savefig(text, format="svg", metadata={"Date": None})
        panels = _panels(figure)
        drawn = text.getvalue()
        if len(drawn) > LARGEST_SVG:
            figure.savefig(pixels, format="png", dpi=160, metadata={"Software": "petridish"})
    width, height = (72 * inches for inches in figure.get_size_inches())
    if pixels.getvalue():
        data = base64.b64encode(pixels.getvalue()).decode()
        size = f'width="{width:g}" height="{height:g}"'
        content = f'<image id="{name}" {size} href="data:image/png;base64,{data}"/>'
    else:
        inner = drawn[drawn.index(">", drawn.index("<svg")) + 1 : drawn.rindex("</svg>")]
        content = f'<g id="{name}">{inner}</g>'
    return Picture(name, title, note, width, height, Markup(content), panels)


def _line(text: str) -> str:
    """Return a caption as one line of plain text."""
    return " ".join(text.replace(r"\$", "$").split())


def _panels(figure: Figure) -> tuple[tuple[Box, Box | None], ...]:
    """Return where the panels and legends of a drawn figure lie, in the order of reading."""
    parts = [axes for axes in figure.axes if axes.get_visible()] + list(figure.legends)
    scale, height = 72 / figure.dpi, 72 * figure.get_size_inches()[1]
    boxes: dict[Box, Any] = {}
    for part in parts:
        ink = part.get_tightbbox()
        if ink is not None and ink.width > 1 and ink.height > 1:
            # A margin of 2 points: the box ends where the ink does.
            left, top = scale * ink.x0 - 2, height - scale * ink.y1 - 2
            boxes[left, top, scale * ink.width + 4, scale * ink.height + 4] = part
    apart = sorted(_without_overlaps(list(boxes)), key=lambda box: (round(box[1] / 36), box[0]))
    labels: dict[Any, Box] = {}  # of the first panel of each row that shares its vertical axis
    found: list[tuple[Box, Box | None]] = []
    for box in apart:
        axes: Any = boxes.get(box)  # or a legend; or joined, and none
        shared = axes.get_shared_y_axes().get_siblings(axes) if hasattr(axes, "yaxis") else []
        row = (frozenset(map(id, shared)), round(box[1] / 36))
        strip = None
        if len(shared) > 1:
            width = scale * axes.get_window_extent().x0 - box[0] - 2  # without the axis itself
            if row not in labels:
                labels[row] = (box[0], box[1], width, box[3])
            elif width < labels[row][2] / 2:  # it has no labels of its own
                strip = (labels[row][0], box[1], labels[row][2], box[3])
        found.append((box, strip))
    return tuple(found) if len(found) > 1 else ()


def _without_overlaps(boxes: Sequence[Box]) -> list[Box]:
    """Join boxes of which one covers most of another, such as axes with two scales."""
    found: list[Box] = []
    for box in sorted(boxes, key=lambda box: -box[2] * box[3]):
        for place, other in enumerate(found):
            wide = min(box[0] + box[2], other[0] + other[2]) - max(box[0], other[0])
            high = min(box[1] + box[3], other[1] + other[3]) - max(box[1], other[1])
            if wide > 0 and high > 0 and wide * high > box[2] * box[3] / 2:
                left, top = min(box[0], other[0]), min(box[1], other[1])
                right = max(box[0] + box[2], other[0] + other[2])
                bottom = max(box[1] + box[3], other[1] + other[3])
                found[place] = (left, top, right - left, bottom - top)
                break
        else:
            found.append(box)
    return found
