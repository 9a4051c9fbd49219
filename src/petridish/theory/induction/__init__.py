"""What TH Chapter 8 and Appendix E say of Markov chains in context, as functions."""
