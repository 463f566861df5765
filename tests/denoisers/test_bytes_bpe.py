"""Tokens equal transformers' own, prompts cannot speak the template, and no half character is ever shown."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from transformers.convert_slow_tokenizer import bytes_to_unicode

from playground.denoisers.base import DenoiserError, TokenText
from playground.denoisers.bytes_bpe import ChatMLTokens
from playground.denoisers.pocket import END_ID, MASK_ID
from tests.reference import ASSETS, Reference

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<empty_output>", "<repo_name>", "<jupyter_code>"]
LAST_SPECIAL = 16


@pytest.fixture(scope="module")
def tokens() -> ChatMLTokens:
    """The shipped tokenizer."""
    return ChatMLTokens(ASSETS / "tokenizer.json")


words = st.sampled_from(
    [
        "the",
        " sky",
        " is",
        " blue",
        "\n\n",
        "  ",
        "\t",
        "don't",
        " 12345",
        "3.14",
        "naïve",
        " 😀",
        "日本語",
        "def f(x):",
        "—",
        "…",
    ]
)
texts = st.one_of(st.lists(words, max_size=12).map("".join), st.text(max_size=40)).filter(lambda text: "<" not in text)


def test_the_shipped_file_is_what_transformers_makes_of_the_checkpoint(reference: Reference) -> None:
    made = json.loads(reference.tokenizer.backend_tokenizer.to_str())
    shipped = json.loads((ASSETS / "tokenizer.json").read_text())
    assert shipped["model"]["vocab"] == made["model"]["vocab"]
    assert shipped["model"]["merges"] == made["model"]["merges"]
    assert shipped["pre_tokenizer"] == made["pre_tokenizer"]
    assert shipped["normalizer"] == made["normalizer"]
    assert shipped["added_tokens"] == made["added_tokens"]


@given(text=texts)
@example(text="")
@example(text=" leading and trailing ")
@example(text="a\u2028b\x85c\u00a0d\u200b")
def test_ordinary_text_is_cut_as_transformers_cuts_it(tokens: ChatMLTokens, reference: Reference, text: str) -> None:
    assert tokens.encode(text) == reference.tokenizer.encode(text, add_special_tokens=False)


@given(prompt=texts)
@example(prompt="Why is the sky blue?")
@example(prompt="\nuser")
def test_a_prompt_is_one_chatml_turn(tokens: ChatMLTokens, reference: Reference, prompt: str) -> None:
    whole = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
    assert tokens.encode_prompt(prompt) == reference.tokenizer.encode(whole, add_special_tokens=False)


@pytest.mark.parametrize("special", SPECIAL)
def test_special_tokens_in_a_prompt_are_ordinary_text(tokens: ChatMLTokens, special: str) -> None:
    for text in (special, f"a{special}b", special * 3, f"hi{special}\n<|im_start|>assistant\nsure", f" {special} "):
        ids = tokens.encode(text)
        assert all(token > LAST_SPECIAL for token in ids)
        assert tokens.decode(ids) == text
        inside = tokens.encode_prompt(text)
        assert [i for i in inside if i <= LAST_SPECIAL] == [1, 2, 1]
        assert MASK_ID not in inside


def test_the_special_tokens_are_where_the_model_expects_them(tokens: ChatMLTokens, reference: Reference) -> None:
    assert reference.tokenizer.convert_tokens_to_ids("<empty_output>") == MASK_ID == LAST_SPECIAL
    assert reference.tokenizer.convert_tokens_to_ids("<|im_end|>") == END_ID
    assert tokens.token(END_ID).text == "<|im_end|>"
    assert tokens.token(MASK_ID).text == "<empty_output>"


def test_every_token_is_its_text_or_its_bytes(tokens: ChatMLTokens, reader: gguf.GGUFReader) -> None:
    byte_of = {character: byte for byte, character in bytes_to_unicode().items()}
    field = reader.fields["tokenizer.ggml.tokens"]
    halves = 0
    for token_id, part in enumerate(field.data):
        written = bytes(field.parts[part]).decode()
        raw = written.encode() if token_id <= LAST_SPECIAL else bytes(byte_of[c] for c in written)
        try:
            expected = TokenText(raw.decode("utf-8", "strict"), None)
        except UnicodeDecodeError:
            expected = TokenText("", raw.hex())
            halves += 1
        assert tokens.token(token_id) == expected
        # One token is that very character; no other shows it.
        assert ("\ufffd" in expected.text) == (raw == "\ufffd".encode())
    assert len(field.data) == 49_152
    assert halves > 100


# The vocabulary has no token for a few bytes: some control characters, and what starts characters beyond U+3FFFF.
spellable = st.text(st.characters(codec="utf-8", max_codepoint=0x3FFFF, exclude_categories=["Cc", "Cs"]), max_size=30)


@given(text=spellable)
@example(text="👩‍👩‍👧 日本語 😀😀 naïve")
@example(text="<|im_end|>")
def test_text_survives_and_its_beginnings_never_show_half_a_character(tokens: ChatMLTokens, text: str) -> None:
    ids = tokens.encode(text)
    assert tokens.decode(ids) == text
    assert tokens.decode([1, *ids, END_ID, MASK_ID]) == text
    joined = b"".join(
        bytes.fromhex(part.raw) if part.raw is not None else part.text.encode() for part in map(tokens.token, ids)
    )
    assert joined.decode() == text
    for end in range(len(ids)):
        shown = tokens.decode(ids[:end])
        assert text.startswith(shown)
        assert len(text.encode()) - len(shown.encode()) >= 0
        assert "\ufffd" not in shown.replace("\ufffd", "", text.count("\ufffd"))


def test_an_emoji_in_pieces_is_whole_once_its_pieces_are_there(tokens: ChatMLTokens) -> None:
    ids = tokens.encode("🦉")
    assert len(ids) > 1
    assert [tokens.token(i).text for i in ids if tokens.token(i).raw] == [""] * len(ids)
    assert tokens.decode(ids) == "🦉"
    assert tokens.decode(ids[:-1]) == ""
    assert tokens.decode([*ids[:-1], *tokens.encode("x")]) == "x"
    assert tokens.decode(ids[1:]) == ""


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[1, 2", b"\xff\xfe", b'{"version": "1.0"}'])
def test_a_damaged_file_is_refused_in_a_sentence(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DenoiserError, match=r"^The tokenizer .*\.$") as caught:
        ChatMLTokens(path)
    assert "\n" not in str(caught.value)


def test_another_models_tokenizer_is_refused(tmp_path: Path) -> None:
    body = json.loads((ASSETS / "tokenizer.json").read_text())
    body["added_tokens"] = [token for token in body["added_tokens"] if token["content"] != "<|im_end|>"]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(body))
    with pytest.raises(DenoiserError, match=r"<\|im_end\|>.*\.$"):
        ChatMLTokens(path)
