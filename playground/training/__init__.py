"""How the embedded model is made: a small autoregressive checkpoint becomes a diffusion denoiser.

Four commands in a row, each resumable: `python -m playground train data | adapt | evaluate | package`.
"""
