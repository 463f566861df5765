"""The reader gives what the `gguf` package gives, and a damaged file a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.denoisers.catalogue import POCKET_CHECKPOINT as CHECKPOINT
from playground.denoisers.gguf import GGUFError, GGUFFile
from playground.settings import ROOT

SHIPPED = ROOT / "assets" / "pocket" / CHECKPOINT


def test_the_shipped_tensors_equal_the_packages(reader: gguf.GGUFReader) -> None:
    file = GGUFFile(SHIPPED)
    assert file.names == [tensor.name for tensor in reader.tensors]
    seen: dict[Kind, int] = {}
    for tensor in reader.tensors:
        seen[tensor.tensor_type] = seen.get(tensor.tensor_type, 0) + 1
        if seen[tensor.tensor_type] > 3:
            continue
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        found = file.tensor(tensor.name)
        assert found.dtype is torch.float32
        assert found.shape == expected.shape == tuple(int(n) for n in tensor.shape[::-1])
        assert np.array_equal(found.numpy(), expected)
    assert set(seen) == {Kind.F32, Kind.Q4_1, Kind.Q8_0}


def test_the_shipped_facts_equal_the_packages(reader: gguf.GGUFReader) -> None:
    facts = {
        name: field.contents()
        for name, field in reader.fields.items()
        if not name.startswith("GGUF.") and field.types[0] is not gguf.GGUFValueType.ARRAY
    }
    assert GGUFFile(SHIPPED).metadata == facts


# --- a small file with all that the format has -------------------------------------------------------


@dataclass(frozen=True)
class Small:
    """A file written by the package, and what its tensors hold."""

    path: Path
    tensors: dict[str, np.ndarray] = field(repr=False)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """See `Small`."""
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_custom_alignment(64)
    writer.add_uint8("a.byte", 200)
    writer.add_int64("a.long", -(2**40))
    writer.add_float64("a.double", 0.1)
    writer.add_bool("a.bool", True)
    writer.add_string("a.text", "naïve 😀")
    writer.add_array("a.words", ["one", "", "three"])
    writer.add_array("a.numbers", [1, 2, 3])
    random = np.random.default_rng(0)
    tensors = {}
    for name, shape, kind in [("f32", (3,), Kind.F32), ("q4", (4, 64), Kind.Q4_1), ("q8", (2, 3, 32), Kind.Q8_0)]:
        values = random.normal(size=shape).astype(np.float32)
        packed = values if kind is Kind.F32 else gguf.quants.quantize(values, kind)
        writer.add_tensor(name, packed, raw_dtype=None if kind is Kind.F32 else kind)
        tensors[name] = gguf.quants.dequantize(packed, kind)
    writer.add_tensor("half", np.ones(4, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Small(path, tensors)


def test_every_kind_of_value_and_tensor(small: Small) -> None:
    file = GGUFFile(small.path)
    assert file.names == ["f32", "q4", "q8", "half"]
    assert file.metadata["a.byte"] == 200
    assert file.metadata["a.long"] == -(2**40)
    assert file.metadata["a.double"] == 0.1
    assert file.metadata["a.bool"] is True
    assert file.metadata["a.text"] == "naïve 😀"
    assert file.metadata["general.alignment"] == 64
    assert not {"a.words", "a.numbers"} & set(file.metadata)
    for name, expected in small.tensors.items():
        assert np.array_equal(file.tensor(name).numpy(), expected)


def test_a_tensor_is_a_copy(small: Small) -> None:
    file = GGUFFile(small.path)
    file.tensor("f32").zero_()
    assert np.array_equal(file.tensor("f32").numpy(), small.tensors["f32"])


# --- damage -----------------------------------------------------------------------------------------


def _read(path: Path, names: Sequence[str]) -> None:
    opened = GGUFFile(path)
    for name in names:
        opened.tensor(name)


def refused(path: Path, *names: str) -> str:
    """The sentence for a file that cannot be opened, or for its tensors."""
    with pytest.raises(GGUFError) as caught:
        _read(path, names)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert str(path) in text
    return text


@pytest.mark.parametrize(
    "content", [b"", b"G", b"GGU", b"GGUF", b"PK\x03\x04" + b"\0" * 100, b"<html>" * 50, b"\0" * 64]
)
def test_what_is_not_gguf_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.gguf"
    path.write_bytes(content)
    assert "fetch the file again" in refused(path)


@pytest.mark.parametrize("version", [0, 1, 4, 2**32 - 1])
def test_other_versions_are_refused(version: int, small: Small, tmp_path: Path) -> None:
    content = bytearray(small.path.read_bytes())
    content[4:8] = version.to_bytes(4, "little")
    path = tmp_path / "file.gguf"
    path.write_bytes(content)
    assert str(version) in refused(path)


def test_unknown_tensors_and_types_are_refused(small: Small) -> None:
    assert "'nothing'" in refused(small.path, "nothing")
    assert "'half'" in refused(small.path, "half")


def test_a_file_that_is_not_there_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        GGUFFile(tmp_path / "none.gguf")


def test_a_file_cut_anywhere_is_refused(small: Small, tmp_path: Path) -> None:
    content = small.path.read_bytes()
    path = tmp_path / "cut.gguf"
    end = content.rindex(np.ones(4, dtype=np.float16).tobytes())
    for size in [*range(0, end - 64, 7), end - 65]:
        path.write_bytes(content[:size])
        refused(path, "f32", "q4", "q8")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_but_never_worse(small: Small, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(small.path.read_bytes())
    header = content.index(b"half") + 60
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, header))
        new = data.draw(st.binary(min_size=1, max_size=8) | st.sampled_from([b"\xff" * 8, b"\0" * 8]))
        content[at : at + len(new)] = new
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    try:
        opened = GGUFFile(path)
    except GGUFError:
        return
    for name in opened.names:
        try:
            assert opened.tensor(name).dtype is torch.float32
        except GGUFError:
            continue
