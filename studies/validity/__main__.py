"""Simulate what is missing, and write ``results/validity/``."""

from studies.validity.record import record_validity

if __name__ == "__main__":
    print(f"recorded: {record_validity()}")
