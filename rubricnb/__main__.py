"""``python -m rubricnb``: the command line."""

from rubricnb.cli.commands import app

if __name__ == "__main__":
    app()
