"""What FL proves, as functions: fixed features, exact networks, the first two steps."""
