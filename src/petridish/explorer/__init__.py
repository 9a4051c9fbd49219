"""The explorer: a page that shows the runs of stores and records, live or as one file."""
