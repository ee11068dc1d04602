"""The dynamics: body moves, shots hit, rules rewards and ends episodes, advance compiles."""
