"""`python -m petridish` is the command `petridish`."""

from petridish.cli.main import main

if __name__ == "__main__":
    main()
