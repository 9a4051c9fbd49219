"""TH Ch. 7: features that emerge because they maximise a margin (FE-1 … FE-4)."""
