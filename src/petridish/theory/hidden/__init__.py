"""Theory of HP: Fourier gaps, disjoint PolyNets, one big step."""
