"""FL: feature learning from the structure of inputs; what is declared, and what is drawn."""
