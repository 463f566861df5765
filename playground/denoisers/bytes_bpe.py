"""Tokens of a byte-level BPE vocabulary in a ChatML template.

Knows bytes and ids, not canvases. A token may hold half a character; such tokens are given as bytes, and only
runs of bytes are decoded, so that no replacement character is ever shown. The byte alphabet is GPT-2's
(https://github.com/openai/gpt-2/blob/master/src/encoder.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer

from playground.denoisers.base import DenoiserError, TokenText, one_line


def _byte_alphabet() -> dict[str, int]:
    """Printable stand-in character -> byte."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}


class ChatMLTokens:
    """A `tokenizer.json` with ChatML turns.

    Raises:
        DenoiserError: the file is missing or is not a tokenizer.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise DenoiserError(f"The tokenizer {path} cannot be read ({one_line(error)}); fetch it again.") from None
        # Otherwise a prompt that spells "<|im_end|>" would end the turn.
        self._tokenizer.encode_special_tokens = True
        added = self._tokenizer.get_added_tokens_decoder()
        self._special = {i: token.content for i, token in added.items() if token.special}
        self._start = self._special_id("<|im_start|>")
        self._end = self._special_id("<|im_end|>")

    def _special_id(self, content: str) -> int:
        for token_id, text in self._special.items():
            if text == content:
                return token_id
        raise DenoiserError(f"The tokenizer has no {content} token; it is not the expected model's.")

    def encode(self, text: str) -> list[int]:
        """Plain text as ids; nothing in it is special."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_prompt(self, prompt: str) -> list[int]:
        """One user turn and the opening of the assistant's."""
        turn = [self._start, *self.encode(f"user\n{prompt}"), self._end, *self.encode("\n")]
        return [*turn, self._start, *self.encode("assistant\n")]

    @cached_property
    def _bytes(self) -> list[bytes]:
        alphabet = _byte_alphabet()
        table = [b""] * self._tokenizer.get_vocab_size()
        for text, token_id in self._tokenizer.get_vocab().items():
            if token_id in self._special:
                table[token_id] = self._special[token_id].encode()
            else:
                table[token_id] = bytes(alphabet[character] for character in text)
        return table

    def token(self, token_id: int) -> TokenText:
        """One token: its text, or its bytes where they are half a character."""
        raw = self._bytes[token_id]
        try:
            return TokenText(raw.decode("utf-8"))
        except UnicodeDecodeError:
            return TokenText("", raw.hex())

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of the tokens; specials and characters that were never completed are left out."""
        joined = b"".join(self._bytes[i] for i in token_ids if i not in self._special)
        return joined.decode("utf-8", "ignore")
