"""What is judged: items, rubrics, dataset loaders and the papers' published tables."""
