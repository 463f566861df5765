"""Tests of `playground.engine`, most of them on a fake denoiser."""
