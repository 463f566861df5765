"""Read the embedded checkpoint: a GGUF file, straight into float tensors.

The `gguf` package needs over three seconds to open this file, because it walks the vocabulary element by
element; the app promises a model within eight. This reader skips the vocabulary (the tokenizer has a file
of its own) and expands only the three tensor types the embedded file uses. It must not know what the
tensors are for. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_RANK = 4
_F32, _Q4_1, _Q8_0 = 0, 3, 8
_BLOCK_BYTES = {_F32: 4, _Q4_1: 20, _Q8_0: 34}
_BLOCK_SIZE = {_F32: 1, _Q4_1: 32, _Q8_0: 32}


class GGUFError(ValueError):
    """The file is not a GGUF file that this reader can expand; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class _Entry:
    shape: tuple[int, ...]
    kind: int
    offset: int


class GGUFFile:
    """An opened GGUF file: `metadata` (arrays left out) and tensors by name.

    Raises:
        GGUFError: wrong magic, version or tensor type, or a file cut short.
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            try:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:
                raise GGUFError(f"{path} is empty; fetch the file again.") from None
        self._at = 0
        try:
            self.metadata, self._entries = self._read_header()
            alignment = int(self.metadata.get("general.alignment", 32))
            self._data_start = (self._at + alignment - 1) // alignment * alignment
        except GGUFError:
            raise
        except (struct.error, KeyError, ValueError, OverflowError, ZeroDivisionError):
            raise self._damaged() from None

    @property
    def names(self) -> list[str]:
        """Names of all tensors, in file order."""
        return list(self._entries)

    def tensor(self, name: str) -> Tensor:
        """Tensor `name` as float32 in row-major order, `[out_features, in_features]` for a matrix.

        Raises:
            GGUFError: no such tensor, a type this reader does not expand, or a file cut short.
        """
        if (entry := self._entries.get(name)) is None:
            raise GGUFError(f"{self.path} has no tensor {name!r}; it is not the expected model.")
        if entry.kind not in _BLOCK_BYTES:
            raise GGUFError(f"{self.path} stores {name!r} in a type this reader does not expand.")
        blocks, rest = divmod(math.prod(entry.shape), _BLOCK_SIZE[entry.kind])
        length = blocks * _BLOCK_BYTES[entry.kind]
        start = self._data_start + entry.offset
        if rest or not 0 < length <= len(self._bytes) - start:
            raise self._damaged()
        # bytearray copies: a tensor over the read-only map would warn and tie its life to the map.
        raw = torch.frombuffer(bytearray(self._bytes[start : start + length]), dtype=torch.uint8)
        return _EXPAND[entry.kind](raw).reshape(entry.shape)

    def _damaged(self) -> GGUFError:
        return GGUFError(f"{self.path} is cut short or damaged; fetch the file again.")

    # --- header ---------------------------------------------------------------------------------

    def _read_header(self) -> tuple[dict[str, Any], dict[str, _Entry]]:
        if self._bytes[:4] != b"GGUF":
            raise GGUFError(f"{self.path} is not a GGUF file; fetch the file again.")
        self._at = 4
        version, tensors, pairs = self._unpack("I"), self._unpack("Q"), self._unpack("Q")
        if version not in (2, 3):
            raise GGUFError(f"{self.path} has GGUF version {version}; this reader knows 2 and 3.")
        metadata: dict[str, Any] = {}
        for _ in range(pairs):
            key = self._string()
            kind = self._unpack("I")
            if (value := self._value(kind)) is not None:
                metadata[key] = value
        entries: dict[str, _Entry] = {}
        for _ in range(tensors):
            name = self._string()
            if (rank := self._unpack("I")) > _MAX_RANK:
                raise struct.error("more dimensions than GGUF has")
            # GGUF lists the fastest dimension first; torch lists it last.
            shape = tuple(self._unpack("Q") for _ in range(rank))[::-1]
            entries[name] = _Entry(shape, self._unpack("I"), self._unpack("Q"))
        return metadata, entries

    def _unpack(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self._bytes, self._at)
        self._at += struct.calcsize("<" + code)
        return value

    def _string(self) -> str:
        length = self._unpack("Q")
        start, self._at = self._at, self._at + length
        if self._at > len(self._bytes):
            raise struct.error("string runs past the end")
        return self._bytes[start : self._at].decode("utf-8")

    def _value(self, kind: int) -> Any:
        """One metadata value; an array is skipped and gives None."""
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._unpack(_SCALARS[kind])
        inner, count = self._unpack("I"), self._unpack("Q")
        if inner == _STRING:
            for _ in range(count):
                self._at += 8 + struct.unpack_from("<Q", self._bytes, self._at)[0]
        else:
            self._at += struct.calcsize(_SCALARS[inner]) * count
        return None


# --- block formats -------------------------------------------------------------------------------


def _expand_f32(raw: Tensor) -> Tensor:
    return raw.view(torch.float32)


def _expand_q4_1(raw: Tensor) -> Tensor:
    """Blocks of 32: half scale, half minimum, then 16 bytes whose low nibbles come first."""
    blocks = raw.view(-1, 20)
    scale = blocks[:, 0:2].contiguous().view(torch.float16).float()
    minimum = blocks[:, 2:4].contiguous().view(torch.float16).float()
    nibbles = blocks[:, 4:]
    values = torch.cat((nibbles & 15, nibbles >> 4), dim=1).float()
    return values.mul_(scale).add_(minimum).flatten()


def _expand_q8_0(raw: Tensor) -> Tensor:
    """Blocks of 32: half scale, then 32 signed bytes."""
    blocks = raw.view(-1, 34)
    scale = blocks[:, 0:2].contiguous().view(torch.float16).float()
    return (blocks[:, 2:].view(torch.int8).float() * scale).flatten()


_EXPAND = {_F32: _expand_f32, _Q4_1: _expand_q4_1, _Q8_0: _expand_q8_0}
