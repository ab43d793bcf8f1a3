"""What answers requests: servers, embedded models, functions, simulated judges.

A new engine is a class in a module here (`rubricnb.core.contract` says what it does)
and one line of ``ENGINES`` in `rubricnb.core.judge`.
"""
