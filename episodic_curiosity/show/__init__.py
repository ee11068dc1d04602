"""What people look at: reports and films."""
