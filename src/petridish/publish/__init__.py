"""What leaves the laboratory: the report, and the records of the repository."""
