"""A trace as a file, and back: JSON lines, a player that opens offline, pictures, figures, text.

`formats` names them all; `reading` takes files in. Must not know models, databases or pages.
"""

from playground.export.lines import STEP_COLUMNS, trace_csv, trace_jsonl, trace_text
from playground.export.reading import read_traces

__all__ = ["STEP_COLUMNS", "read_traces", "trace_csv", "trace_jsonl", "trace_text"]
