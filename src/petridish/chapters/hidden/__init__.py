"""HP: hidden progress (HP-1 … HP-15)."""
