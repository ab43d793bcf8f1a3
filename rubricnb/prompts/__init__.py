"""How an item is put to the judge: one template file per prompt, one renderer."""
