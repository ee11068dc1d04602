"""`python -m episodic_curiosity` is the command `curiosity`."""

from episodic_curiosity.cli.main import main

if __name__ == "__main__":
    main()
