"""The data of the papers, their published tables, and what others recorded."""
