"""Rendering: scene holds the inputs of a frame, renderer draws it on any device."""
