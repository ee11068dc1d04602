"""What is seen: scene says what a picture depends on, renderer draws it on any device."""
