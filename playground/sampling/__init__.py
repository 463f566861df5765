"""Pure maths on logits: how many positions to commit, which, and with what token.

Nothing in here knows a tokenizer, a model, a clock or a page.
"""
