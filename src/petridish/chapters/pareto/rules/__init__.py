"""Rules of PF that no general rule can say."""
