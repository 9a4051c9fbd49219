"""Theory of TH Ch. 4: what attention heads of bounded norm can hold, and what they can do."""
