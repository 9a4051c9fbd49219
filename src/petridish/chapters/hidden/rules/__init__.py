"""Rules of HP that no general rule can say."""
