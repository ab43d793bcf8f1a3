"""What answers requests: servers, embedded models, functions, simulated judges."""
