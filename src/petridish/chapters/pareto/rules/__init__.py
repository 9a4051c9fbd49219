"""Rules of PF whose mathematics no general rule has."""
