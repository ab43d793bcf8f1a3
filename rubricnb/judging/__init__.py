"""Who judges and how the answers are kept: contract, engines, readout, store, run."""
