"""Many runs: the paper's tables and numbers, cells, results, and who measures them."""
