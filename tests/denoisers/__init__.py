"""Tests of `playground.denoisers`, against the `gguf`, `transformers` and `peft` packages."""
