"""Gradio's own controls in the house's colours; what Gradio has no setting for is in static/page.css.

One accent, warm greys, no red and green; system fonts only, so that nothing is fetched.
"""

from __future__ import annotations

import gradio as gr
from gradio.themes.utils.colors import Color

_PAPER = Color(
    name="paper",
    c50="#fdfcfa",
    c100="#f7f5f0",
    c200="#e9e4db",
    c300="#d3ccbf",
    c400="#a9a196",
    c500="#7b7164",
    c600="#655e55",
    c700="#45413c",
    c800="#2d2b28",
    c900="#1f1d1b",
    c950="#141312",
)
_INK_BLUE = Color(
    name="ink",
    c50="#f0f3ff",
    c100="#e6ebff",
    c200="#c3cfff",
    c300="#a9b9ff",
    c400="#7d92f5",
    c500="#4a66e0",
    c600="#2e4bd0",
    c700="#263fb0",
    c800="#262c4d",
    c900="#1b2140",
    c950="#12162b",
)
_SANS = ("ui-sans-serif", "system-ui", "Segoe UI", "Noto Sans", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")

THEME = gr.themes.Base(
    primary_hue=_INK_BLUE, secondary_hue=_INK_BLUE, neutral_hue=_PAPER, font=_SANS, font_mono=_MONO
).set(
    body_background_fill="#f7f5f0",
    body_background_fill_dark="#121110",
    body_text_color="#1f1c19",
    body_text_color_dark="#eeeae2",
    body_text_color_subdued="#655e55",
    body_text_color_subdued_dark="#a9a196",
    background_fill_primary="#fdfcfa",
    background_fill_primary_dark="#191817",
    background_fill_secondary="#f7f5f0",
    background_fill_secondary_dark="#121110",
    border_color_primary="#e9e4db",
    border_color_primary_dark="#2d2b28",
    block_background_fill="transparent",
    block_background_fill_dark="transparent",
    block_border_width="0px",
    block_shadow="none",
    block_padding="0px",
    block_label_background_fill="transparent",
    block_label_background_fill_dark="transparent",
    block_title_text_weight="600",
    block_title_text_size="13px",
    block_title_text_color="#1f1c19",
    block_title_text_color_dark="#eeeae2",
    block_info_text_color="#655e55",
    block_info_text_color_dark="#a9a196",
    input_background_fill="#fdfcfa",
    input_background_fill_dark="#191817",
    input_border_color="#d3ccbf",
    input_border_color_dark="#45413c",
    input_border_width="1px",
    input_radius="10px",
    button_primary_background_fill="#2e4bd0",
    button_primary_background_fill_dark="#a9b9ff",
    button_primary_background_fill_hover="#263fb0",
    button_primary_background_fill_hover_dark="#c3cfff",
    button_primary_text_color="#ffffff",
    button_primary_text_color_dark="#12162b",
    button_secondary_background_fill="transparent",
    button_secondary_background_fill_dark="transparent",
    button_secondary_background_fill_hover="#efebe3",
    button_secondary_background_fill_hover_dark="#2a2826",
    button_secondary_border_color="#d3ccbf",
    button_secondary_border_color_dark="#45413c",
    button_secondary_text_color="#1f1c19",
    button_secondary_text_color_dark="#eeeae2",
    button_cancel_background_fill="#1f1c19",
    button_cancel_background_fill_dark="#eeeae2",
    button_cancel_background_fill_hover="#45413c",
    button_cancel_background_fill_hover_dark="#d3ccbf",
    button_cancel_text_color="#ffffff",
    button_cancel_text_color_dark="#191817",
    slider_color="#2e4bd0",
    slider_color_dark="#a9b9ff",
    button_border_width="1px",
    panel_background_fill="transparent",
    panel_background_fill_dark="transparent",
    panel_border_width="0px",
)
