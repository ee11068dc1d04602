"""A bonus from outside: observations that were seen rarely pay more."""
