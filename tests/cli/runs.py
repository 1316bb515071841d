"""Commands run in this process, and options of a training that is short."""

from click.testing import CliRunner, Result

from retrograd.cli.main import app

QUICK = ["--steps", "3", "--samples", "3", "--width", "8", "--heads", "2", "--backend", "reference"]


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in args])
