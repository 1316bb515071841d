"""`python -m retrograd` is the command `retrograd`."""

from retrograd.cli.main import app

app(prog_name="retrograd")
