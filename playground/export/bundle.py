"""Our own scripts in static/ as one module without imports, and a stylesheet, for a page that opens from disk.

A browser loads no module from another file there. Each module becomes a function that gives its exports, in the order
in which they need each other. Understands the plain imports and exports that static/ is written in and refuses the
rest, so that a change there cannot make a broken page unnoticed. Must not know what the scripts do.
"""

from __future__ import annotations

import re
from pathlib import Path

from playground.settings import ROOT

STATIC = ROOT / "static"
_NAMES = r"\{([^{}]*)\}"
_IMPORT = re.compile(rf'^import\s+{_NAMES}\s+from\s+"\./([\w-]+\.js)";\n', re.M)
_PASSED_ON = re.compile(rf'^export\s+{_NAMES}\s+from\s+"\./([\w-]+\.js)";\n', re.M)
_DECLARED = re.compile(r"^export\s+((?:async\s+)?function\*?|class|const)\s+([\w$]+)", re.M)
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*|\bimport\(.*", re.M)
_COMMENT = re.compile(r"^[ \t]*(?:/\*(?:(?!\*/).)*\*/|//[^\n]*)[ \t]*\n", re.M | re.S)


class BundleError(RuntimeError):
    """A file of static/ is written in a way that cannot be bundled; its text names it."""


def bundle(entry: str, folder: Path = STATIC) -> str:
    """`entry` and all it imports, as the text of one module.

    Raises:
        BundleError: an import or export that is not understood, or modules that import each other in a circle.
    """
    done: dict[str, str] = {}
    _add(entry, folder, done, ())
    return "".join(done.values())


def stylesheet(*names: str, folder: Path = STATIC) -> str:
    """Stylesheets one after another, without comments."""
    return "".join(without_comments((folder / name).read_text("utf-8")) for name in names)


def without_comments(text: str) -> str:
    """A script or stylesheet without the comments that have lines to themselves."""
    return re.sub(r"\n{2,}", "\n", _COMMENT.sub("", text))


def _add(name: str, folder: Path, done: dict[str, str], on_the_way: tuple[str, ...]) -> None:
    """Put a module into `done`, behind all that it needs."""
    if name in done:
        return
    if name in on_the_way:
        raise BundleError(f"static/{name} imports itself by way of {', '.join(on_the_way)}.")
    source = without_comments((folder / name).read_text("utf-8"))
    for needed in (*_IMPORT.finditer(source), *_PASSED_ON.finditer(source)):
        _add(needed[2], folder, done, (*on_the_way, name))
    done[name] = _wrapped(name, source)


def _wrapped(name: str, source: str) -> str:
    """One module as a constant that holds its exports."""
    exports = [found[2] for found in _DECLARED.finditer(source)]
    passed_on = "".join(
        f", {as_name}: {_constant(found[2])}.{own}"
        for found in _PASSED_ON.finditer(source)
        for own, as_name in _names(found[1])
    )
    body = _PASSED_ON.sub("", source)
    body = _IMPORT.sub(lambda found: f"const {{ {_unpacked(found[1])} }} = {_constant(found[2])};\n", body)
    body = _DECLARED.sub(r"\1 \2", body)
    if left := _LEFT_OVER.search(body):
        raise BundleError(f"static/{name} has a line that cannot be bundled: {left[0][:80]}")
    given = f"{', '.join(exports)}{passed_on}".removeprefix(", ")
    return f"const {_constant(name)} = (() => {{\n{body.strip()}\nreturn {{ {given} }};\n}})();\n"


def _names(inside: str) -> list[tuple[str, str]]:
    """`a, b as c` as pairs of the name over there and the name here."""
    pairs = (entry.strip().split(" as ") for entry in inside.split(",") if entry.strip())
    return [(pair[0].strip(), pair[-1].strip()) for pair in pairs]


def _unpacked(inside: str) -> str:
    return ", ".join(own if own == here else f"{own}: {here}" for own, here in _names(inside))


def _constant(name: str) -> str:
    return f"$${re.sub(r'[^A-Za-z0-9]', '_', name.removesuffix('.js'))}"
