"""Theory of TH Ch. 7: maximum margins, and the networks that attain them."""
