"""The Gradio page. It shows recorded runs, and starts live runs through `session`."""
