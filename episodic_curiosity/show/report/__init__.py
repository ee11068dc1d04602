"""Pages for a browser: one file each, without a network; measured beside what it came from."""
