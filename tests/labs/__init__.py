"""Tests of `playground.labs`: sane numbers on tiny settings, never how fast this machine is."""
