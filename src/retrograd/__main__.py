"""`python -m retrograd` is the command `retrograd`."""

from retrograd.cli.main import app

if __name__ == "__main__":
    app(prog_name="retrograd")
