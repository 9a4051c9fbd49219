"""The command line: arguments in, one call into the rooms."""
