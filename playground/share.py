"""Links: a request as the query of an address and back, a stored run by its id, and what an embedded page leaves out.

Small requests stay readable, so that people can change a link by hand; long ones are packed. What comes out of a link
is only ever values for `parse_request`, which refuses what is wrong; nothing here runs anything. Must not know pages.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from playground.request import GenerationRequest, RequestError

LONGEST_READABLE = 1_500
"""A query longer than this many characters is packed."""
LONGEST_QUERY = 7_000
"""Web servers and proxies refuse addresses from 8 KB on."""
LONGEST_UNPACKED = 2_000_000
"""Bytes; so that a small packed link cannot ask for all memory."""
PACKED, RUN, EMBED, HIDE = "z", "run", "embed", "hide"
HIDEABLE: Mapping[str, str] = MappingProxyType(
    {
        "prompt": "Prompt",
        "examples": "Recorded runs",
        "settings": "All settings",
        "presets": "Presets",
        "model": "Model",
        "knobs": "Knobs and seed",
        "export": "Export and links",
        "chart": "Chart",
        "legend": "Legend",
        "figures": "Figures",
        "infill": "Infill tab",
        "json": "JSON tab",
        "runs": "Runs tab",
    }
)
"""What an embedded page can do without: name in the link, name for people. static/share.css hides them."""
DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "model": "pocket",
        "length": 48,
        "steps": 48,
        "block": 8,
        "schedule": "even",
        "confidence": "probability",
        "threshold": 0.9,
        "entropy_bound": 0.1,
        "correction": "none",
        "acceptance": 0.3,
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "stop_rule": "never-first",
        "stop_penalty": 3.0,
        "end_at_stop": True,
        "seed": None,
        "deadline": None,
        "reproducible": False,
    }
)
"""What a link leaves out, and so means for ever: the request's own defaults may change, old links may not."""
_NOT_SETTINGS = frozenset({"parent_run_id", "parent_step"})
"""What says where a run came from: whoever is given a link need not learn of other runs."""
_RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
DAMAGED = "The link is damaged, its settings cannot be read; copy it again, from its first to its last character."


@dataclass(frozen=True, slots=True)
class Link:
    """What a link asks the page to show: settings, a stored run, or neither; and what to leave out."""

    values: Mapping[str, Any] | None = None
    run_id: str = ""
    hidden: tuple[str, ...] = ()


def query_of(request: Mapping[str, Any]) -> str:
    """The query that stands for a request's fields, as `Header.request` has them.

    Raises:
        RequestError: it is too long for an address.
    """
    said = {name: value for name, value in request.items() if _differs(name, value)}
    pairs = [(name, _written(name, value)) for name, value in said.items()]
    query = urlencode(pairs, quote_via=quote, safe="", errors="replace")
    if len(query) > LONGEST_READABLE:
        query = f"{PACKED}={_packed(said)}"
    if len(query) > LONGEST_QUERY:
        raise RequestError("This is too much for a link; export the run as JSON lines and hand that on.")
    # Programs that make links clickable take a last full stop for the end of a sentence.
    return f"{query[:-1]}%2E" if query.endswith(".") else query


def run_query(run_id: str) -> str:
    """The query that opens a stored run."""
    return urlencode({RUN: run_id})


def embed_query(hidden: Iterable[str]) -> str:
    """What is added for an embedded page without these controls."""
    names = [name for name in HIDEABLE if name in set(hidden)]
    return f"{EMBED}=1" + (f"&{HIDE}={','.join(names)}" if names else "")


def read_link(query: Iterable[tuple[str, str]]) -> Link:
    """What an address asks for. Names that are not ours are left alone: pages and trackers add their own.

    The values are not checked yet, `parse_request` does that.

    Raises:
        RequestError: the link says something twice, is damaged, or hides what there is not; one sentence.
    """
    fields = GenerationRequest.model_fields.keys() - _NOT_SETTINGS
    ours = {*fields, PACKED, RUN, EMBED, HIDE}
    given: dict[str, str] = {}
    for name, text in query:
        if name in ours and given.setdefault(name, text) != text:
            raise RequestError(f"The link gives {name} twice, {given[name][:40]!r} and {text[:40]!r}; take one out.")
    hidden = _hidden(given)
    if RUN in given:
        if not _RUN_ID.fullmatch(given[RUN]):
            raise RequestError(f"The link names a run {given[RUN][:40]!r}, which no run is called; copy it again.")
        return Link(run_id=given[RUN], hidden=hidden)
    values = _unpacked(given[PACKED]) if PACKED in given else {}
    values |= {name: _read(name, text) for name, text in given.items() if name in fields}
    return Link({**DEFAULTS, **values} if values else None, hidden=hidden)


# --- one value ----------------------------------------------------------------------------------


def _differs(name: str, value: Any) -> bool:
    """Whether a link has to say it."""
    if name in _NOT_SETTINGS:
        return False
    if name in DEFAULTS:
        return bool(value != DEFAULTS[name])
    field = GenerationRequest.model_fields.get(name)
    return field is not None and (field.is_required() or value not in (field.default, _plain(field.default)))


def _plain(default: Any) -> Any:
    """A default as JSON has it."""
    return list(default) if isinstance(default, tuple) else default


def _is_text(name: str) -> bool:
    kind = GenerationRequest.model_fields[name].annotation
    return isinstance(kind, type) and issubclass(kind, str | StrEnum)


def _written(name: str, value: Any) -> str:
    """Texts as they are, numbers and the like as JSON."""
    return str(value) if _is_text(name) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _read(name: str, text: str) -> Any:
    """The opposite; what is no JSON stays text, and is refused where it is checked."""
    if _is_text(name):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# --- many values --------------------------------------------------------------------------------


def _packed(values: Mapping[str, Any]) -> str:
    body = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.urlsafe_b64encode(zlib.compress(body, 9)).decode().rstrip("=")


def _unpacked(text: str) -> dict[str, Any]:
    """Values that were packed.

    Raises:
        RequestError: they cannot be unpacked, or would unpack to far too much.
    """
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        body = unpacking.decompress(data, LONGEST_UNPACKED)
        values = json.loads(body) if unpacking.eof else None
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        raise RequestError(DAMAGED) from None
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise RequestError(DAMAGED)
    return values


def _hidden(given: Mapping[str, str]) -> tuple[str, ...]:
    if given.get(EMBED) != "1":
        return ()
    names = [name.strip() for name in given.get(HIDE, "").split(",") if name.strip()]
    if unknown := next((name for name in names if name not in HIDEABLE), None):
        raise RequestError(f"The link hides {unknown[:40]!r}, which there is not; choose from {', '.join(HIDEABLE)}.")
    return tuple(names)
