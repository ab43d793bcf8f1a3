"""How the recorded results came about: run from a clone,
such as ``python -m studies.fitting``.
"""
