"""The player's page: what it holds can be read back, and nothing in it gets out of its place."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings

from playground.export.bundle import BundleError, bundle, stylesheet, without_comments
from playground.export.html import ENTRY, STYLES, inert_json, trace_html
from playground.export.reading import read_traces
from playground.labs import examples
from playground.trace import Trace
from tests.export.traces import HOSTILE, hostile_trace, traces


class Elements(HTMLParser):
    """Every element that a parser sees, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.names.append(tag)


@settings(deadline=None, max_examples=60)
@given(traces())
def test_the_trace_comes_back_out_of_the_page(trace: Trace) -> None:
    assert read_traces(trace_html(trace).encode()) == [Trace.from_lines(trace.to_lines())]


@settings(deadline=None, max_examples=60)
@given(traces())
def test_every_trace_makes_the_same_elements(trace: Trace) -> None:
    tame = Elements(trace_html(examples.load()[0].trace)).names
    assert Elements(trace_html(trace)).names == tame


def test_hostile_texts_are_inert() -> None:
    page = trace_html(hostile_trace())
    assert page.count("<script") == page.count("</script") == 2
    assert "<!--" not in page
    assert "<img" not in page
    assert page.count("</title>") == page.count("</noscript>") == page.count("</style>") == 1
    data = inert_json(HOSTILE)
    assert not set("<>&\u2028\u2029\ufeff\uffff") & set(data)
    assert json.loads(data) == HOSTILE


def test_the_page_stands_alone() -> None:
    page = trace_html(examples.load()[0].trace)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert set(re.findall(r"https?://[\w./-]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"^\s*(?:import|export)\b", page, re.M)
    assert not re.search(r"<(?:link|img|iframe)\b|\bsrc=|\bhref=|@import|url\(", page)


def test_the_bundle_is_understood_by_node(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("install Node (apt install nodejs)")
    path = tmp_path / "bundle.mjs"
    path.write_text(bundle(ENTRY), "utf-8")
    done = subprocess.run([node, "--check", str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_bundled_modules_behave_like_the_files(tmp_path: Path) -> None:
    """The trace's own module, which passes others' exports on, counts the same through both."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("install Node (apt install nodejs)")
    lines = json.dumps(examples.load()[1].trace.to_lines())
    ask = (
        "const t = new {m}.Trace(); t.feed(lines); const views = {m}.viewsOf(t, 9);"
        "console.log(JSON.stringify([{m}.FORMAT, t.frames.length, views, {m}.figuresAt(t, 9)]));"
    )
    static = Path(__file__).parents[2] / "static"
    said = []
    for name, source in (
        ("bundled", bundle("trace.js") + f"const lines = {lines};" + ask.replace("{m}", "$$trace")),
        ("apart", f'import * as m from "{static.as_uri()}/trace.js"; const lines = {lines};' + ask.replace("{m}", "m")),
    ):
        path = tmp_path / f"{name}.mjs"
        path.write_text(source, "utf-8")
        said.append(subprocess.run([node, str(path)], capture_output=True, text=True, timeout=60, check=True).stdout)
    assert said[0] == said[1]
    assert len(said[0]) > 1000


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"a.js": 'import b from "./b.js";\n'}, "cannot be bundled"),
        ({"a.js": "export default 1;\n"}, "cannot be bundled"),
        ({"a.js": "export let a = 1;\n"}, "cannot be bundled"),
        ({"a.js": 'const b = import("./b.js");\n'}, "cannot be bundled"),
        ({"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}, "imports itself"),
    ],
)
def test_what_cannot_be_bundled_is_refused(tmp_path: Path, files: dict[str, str], sentence: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(BundleError, match=sentence):
        bundle("a.js", tmp_path)


def test_only_comments_that_have_their_lines_are_taken_out() -> None:
    source = '/* one\n * two */\nconst a = "/* kept */";\n/** @type {X} */ let b;\n\n  // gone\nc(); // kept\n'
    assert without_comments(source) == 'const a = "/* kept */";\n/** @type {X} */ let b;\nc(); // kept\n'
    assert "/*" not in stylesheet(*STYLES)
