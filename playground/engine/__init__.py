"""From request to trace: queue, batches, the denoising loop. Knows no page, no database, no text box."""
