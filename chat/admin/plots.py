"""Bars over time as SVG, with the same numbers as a table beside: for pages of the admin, without a script."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

WIDTH: Final = 640
HEIGHT: Final = 130
FOOT: Final = 18
HEAD: Final = 16
NAME: Final = 64
"""What the name of a time takes: the last one ends with the drawing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value at a time. `bad`: the part of it that is drawn as such."""

    name: str
    value: Decimal | int
    text: str
    bad: Decimal | int = 0


def plot(label: str, time: str, bars: Sequence[Bar]) -> SafeString:
    """Draw bars. `label`: what they are, also for those who do not see them. `time`: the heading of their names."""
    most = max(bars, key=lambda bar: bar.value)
    top = float(most.value) or 1.0
    step = WIDTH / len(bars)
    every = -(-len(bars) // 8)
    shapes = [_bar(bar, number * step, step, top) for number, bar in enumerate(bars)]
    marks = [
        (f"{min(number * step + 2, WIDTH - NAME):.1f}", HEIGHT - 4, bar.name)
        for number, bar in enumerate(bars)
        if not number % every
    ]
    names = format_html_join("", '<text x="{}" y="{}">{}</text>', marks)
    base = HEIGHT - FOOT
    drawn = format_html(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}: {}"><line x1="0" y1="{}" x2="{}" y2="{}"/>'
        '<text x="0" y="11">{}</text>{}{}</svg>',
        *(WIDTH, HEIGHT, label, _("at most %(value)s") % {"value": most.text}, base, WIDTH, base),
        *(most.text, SafeString("".join(shapes)), names),
    )
    return format_html('<figure class="think-plot">{}{}</figure>', drawn, _table(label, time, bars))


def _bar(bar: Bar, left: float, step: float, top: float) -> SafeString:
    height, bad = (_height(value, top) for value in (bar.value, bar.bad))
    place = (f"{left + step * 0.12:.1f}", f"{step * 0.76:.1f}")
    shape = '<rect x="{}" width="{}" y="{}" height="{}" rx="2"{}><title>{}: {}</title></rect>'
    good = format_html(shape, *place, f"{HEIGHT - FOOT - height:.1f}", f"{height:.1f}", "", bar.name, bar.text)
    if not bad:
        return good
    mark = SafeString(' class="is-bad"')
    return good + format_html(shape, *place, f"{HEIGHT - FOOT - bad:.1f}", f"{bad:.1f}", mark, bar.name, bar.text)


def _height(value: Any, top: float) -> float:
    return max(2.0, float(value) / top * (HEIGHT - FOOT - HEAD)) if value else 0.0


def _table(label: str, time: str, bars: Sequence[Bar]) -> SafeString:
    rows = format_html_join(
        "", '<tr><th scope="row">{}</th><td class="is-number">{}</td></tr>', ((bar.name, bar.text) for bar in bars)
    )
    return format_html(
        '<details><summary>{}</summary><table class="think-table"><thead><tr><th scope="col">{}</th>'
        '<th scope="col" class="is-number">{}</th></tr></thead><tbody>{}</tbody></table></details>',
        *(_("As a table"), time, label, rows),
    )
