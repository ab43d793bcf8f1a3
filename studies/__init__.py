"""How the recorded results came about, such as ``python -m studies.fitting``."""
