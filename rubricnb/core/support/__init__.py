"""Small parts that know nothing of judging."""
