"""What to do about errors: labels, raters, an error budget, advice."""
