"""Any Gymnasium environment: spaces says what is seen and done, world steps N copies."""
