# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The style of HTML reports: light and dark as the reader's system, light on paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --ink: #1b1f24; --soft: #57606a; --rule: #d0d7de; --shade: #f3f5f7;
  --band: #e2e8ee; --plus: #0b5cad; --minus: #b54708; --chosen: #1a7f37;
  --marker0: #0b5cad; --marker1: #b54708; --marker2: #6639ba; --marker3: #0f766e;
  --marker4: #9f1239;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161b; --ink: #e6edf3; --soft: #9da7b3; --rule: #39424c; --shade: #1d242c;
    --band: #2b343e; --plus: #6cb6ff; --minus: #f69d50; --chosen: #57ab5a;
    --marker0: #6cb6ff; --marker1: #f69d50; --marker2: #b083f0; --marker3: #39c5bb;
    --marker4: #ff8fa3;
  }
}
body {
  margin: 0 auto; padding: 1rem 1.25rem 3rem; max-width: 62rem;
  background: var(--page); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--rule); font-size: 1.25rem; }
h3 { display: inline; font-size: 1.05rem; }
a { color: var(--plus); }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0; list-style: none; }
table { border-collapse: collapse; margin: 0.75rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); }
th, td {
  padding: 0.2rem 1rem 0.2rem 0; border-bottom: 1px solid var(--rule);
  text-align: left; vertical-align: top; overflow-wrap: anywhere;
}
th[scope=row] { font-weight: 600; }
figure { margin: 1.25rem 0; break-inside: avoid; }
figcaption, .legend, footer { color: var(--soft); font-size: 0.9rem; }
figcaption strong { color: var(--ink); }
details { margin: 0.75rem 0; }
summary { cursor: pointer; }
pre {
  overflow-x: auto; padding: 0.75rem; background: var(--shade); border: 1px solid var(--rule);
  font: 0.8rem/1.4 ui-monospace, monospace;
}
svg { max-width: 100%; height: auto; }
.legend svg { margin-left: 0.75rem; }
.plus, .index0, .index1, .index2, .index3 { fill: var(--plus); }
.minus { fill: var(--minus); }
.level1 { fill-opacity: 0.3; }
.level2 { fill-opacity: 0.5; }
.level3 { fill-opacity: 0.75; }
.index0 { fill-opacity: 0.12; }
.index1 { fill-opacity: 0.3; }
.index2 { fill-opacity: 0.5; }
.index3 { fill-opacity: 0.75; }
.band { fill: var(--band); }
.padding { fill: var(--soft); fill-opacity: 0.35; }
.grid { fill: none; stroke: var(--rule); stroke-width: 0.5px; }
.fragment { fill: none; stroke: var(--ink); stroke-width: 1.5px; }
.digit { fill: var(--ink); text-anchor: middle; dominant-baseline: central; }
.label { fill: var(--ink); font-size: 12px; }
.label { stroke: var(--page); stroke-width: 3px; paint-order: stroke; }
.tick { stroke: var(--rule); }
.frame { fill: none; stroke: var(--soft); }
.roof { stroke: var(--ink); stroke-width: 2px; }
.copy { stroke-dasharray: 6 4; }
.ring { fill: none; stroke: var(--chosen); stroke-width: 2.5px; }
.marker { stroke: var(--page); }
.marker0 { fill: var(--marker0); }
.marker1 { fill: var(--marker1); }
.marker2 { fill: var(--marker2); }
.marker3 { fill: var(--marker3); }
.marker4 { fill: var(--marker4); }
@media print {
  :root {
    color-scheme: light;
    --page: #ffffff; --ink: #000000; --soft: #444444; --rule: #bbbbbb; --shade: #f0f0f0;
    --band: #e2e2e2; --plus: #0b5cad; --minus: #b54708; --chosen: #1a7f37;
    --marker0: #0b5cad; --marker1: #b54708; --marker2: #6639ba; --marker3: #0f766e;
    --marker4: #9f1239;
  }
  body { max-width: none; padding: 0; }
  nav { display: none; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
}
"""
