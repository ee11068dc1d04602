"""What happens in a step: body moves, shots hit, rules pay and end, advance compiles them."""
