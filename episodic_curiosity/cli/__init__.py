"""The command `curiosity`: one module per subcommand."""
