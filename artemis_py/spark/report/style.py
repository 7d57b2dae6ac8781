"""The style sheet of a page: light or dark as the reader likes it, for wide screens and for telephones.

Nothing on it is wider than the screen but tables, plots and texts, and these scroll within themselves.
"""

from __future__ import annotations

from typing import Final

LIGHT: Final = {
    "paper": "#f7f8fa", "ink": "#1c2330", "faint": "#5b6475", "rule": "#dfe3ea", "card": "#ffffff", "row": "#f1f4f9",
    "c0": "#2563eb", "c1": "#d9480f", "c2": "#0f8a5f", "c3": "#9333ea", "c4": "#a8590a", "c5": "#0b7c99",
    "c6": "#be185d", "c7": "#52525b",
}  # fmt: skip
DARK: Final = {
    "paper": "#14171c", "ink": "#e6e9ef", "faint": "#a3adbd", "rule": "#323a47", "card": "#1b2027", "row": "#232a34",
    "c0": "#7aa7ff", "c1": "#ff9466", "c2": "#4fd1a1", "c3": "#c69bff", "c4": "#f0b757", "c5": "#5fd4ea",
    "c6": "#ff8ac0", "c7": "#b4bac4",
}  # fmt: skip
DASHES: Final = ("none", "7 5", "2 4", "12 4 2 4", "4 8", "14 8", "2 3 8 3", "9 3 3 3")
"""Of each line its own: through the gaps of one the line below it is seen."""

_RULES: Final = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 1280px; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .35rem; }
h2 { font-size: 1.1rem; line-height: 1.3; margin: 2.5rem 0 .15rem; }
.when, .missing, .none, .about { color: var(--faint); margin: 0; }
.about { margin: 0 0 .7rem; max-width: 100ch; font-size: .9rem; text-wrap: pretty; }
.missing { margin-top: .5rem; } h2 + .card { margin-top: .6rem; }
.endless { overflow-wrap: anywhere; }
dl { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0 0; }
dl div, .card { background: var(--card); border: 1px solid var(--rule); border-radius: .6rem; }
dl div { padding: .6rem 1rem; max-width: 100%; }
dt { color: var(--faint); font-size: .85rem; }
dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.note { border-left: 3px solid var(--c4); padding-left: .8rem; margin: .5rem 0; max-width: 90ch; }
dl + .note, .when + .note { margin-top: 1.5rem; }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .85rem; line-height: 1.4; }
th, td { padding: .4rem .55rem; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; }
.dense { font-size: .76rem; } .dense th, .dense td { padding: .35rem .25rem; }
.dense .number + :not(.number) { padding-left: .7rem; }
th { color: var(--faint); font-weight: 600; vertical-align: bottom; }
table th:first-child, table td:first-child { position: sticky; left: 0; background: var(--card); padding-left: .9rem; }
table th:last-child, table td:last-child { padding-right: .9rem; }
tbody tr:last-child td { border-bottom: 0; }
tbody tr:hover td { background: var(--row); }
.number + :not(.number) { padding-left: .9rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number, .whole { white-space: nowrap; }
pre { margin: 0; padding: 1rem;
  font: 13px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
figure { margin: 0; padding: .9rem; }
figure svg { display: block; width: 100%; min-width: 820px; height: auto; }
.grid { stroke: var(--rule); }
.mark { fill: var(--faint); font-size: 12px; font-variant-numeric: tabular-nums; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.ring { fill: none; stroke-width: 2; }
.spot { fill: transparent; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; margin: 0; padding: .1rem .9rem .8rem;
  font-size: .85rem; line-height: 1.35; }
.legend li { display: flex; gap: .5rem; }
svg.sample { flex: none; width: 34px; height: 10px; margin-top: .3em; }
.same { color: var(--faint); }
.bars { list-style: none; margin: 0; padding: .8rem .9rem; display: grid; gap: .35rem .8rem; font-size: .85rem;
  grid-template-columns: minmax(8rem, max-content) minmax(0, 1fr); line-height: 1.35; }
.bars li { display: contents; }
.bars .name { text-align: right; max-width: 26rem; align-self: center; }
.bars .much { display: flex; align-items: center; gap: .5rem; }
.bars .bar { flex: 0 1 auto; width: calc(var(--share) * 88%); min-width: 2px; height: 1rem; border-radius: .2rem;
  background: var(--c0); }
.bars .value { white-space: nowrap; font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  body { padding: 1.25rem .8rem 3rem; }
  h1 { font-size: 1.4rem; }
  dl { gap: .5rem; } dl div { padding: .45rem .75rem; } dd { font-size: 1.1rem; }
  th:first-child, td:first-child { max-width: 45vw; border-right: 1px solid var(--rule); }
  .bars { grid-template-columns: minmax(0, 1fr); gap: .1rem; }
  .bars .name { text-align: left; max-width: none; } .bars .much { margin-bottom: .5rem; }
}
@media print { .wide { overflow: visible; } .card { break-inside: avoid; } }
"""


def style_sheet() -> str:
    """All of it."""
    lines = "".join(
        f".line.c{number}, .ring.c{number} {{ stroke: var(--c{number}); }}"
        f" .line.c{number} {{ stroke-dasharray: {dash}; }}\n"
        for number, dash in enumerate(DASHES)
    )
    return (
        f":root {{ color-scheme: light dark; {_variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}\n{_RULES}{lines}"
    )


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())
