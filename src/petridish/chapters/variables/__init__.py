"""TH Chapter 4: how transformers find the relevant variables; what is declared and judged."""
