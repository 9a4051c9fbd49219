"""IH: statistical induction heads, TH Chapter 8."""
