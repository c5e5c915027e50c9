"""Help on the command line: examples under each command, clearer errors than click's, and `svc completion`.

What may live here: the form of examples (each command has its own in its `epilog`; `tests/spec/test_help.py` parses
them all); from click's errors to clearer ones; groups of commands, whose help is cut nowhere; completion scripts.
"""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

OPTIONS: dict[str, str] = {
    "--port": "--bind",
    "--host": "--bind",
    "--listen": "--bind",
    "--address": "--bind",
    "--data-dir": "--data",
    "--directory": "--data",
    "--dir": "--data",
    "--database": "--store",
    "--db": "--store",
    "--settings": "--config",
    "--cert": "--certfile",
    "--key": "--keyfile",
    "--force": "--yes",
}
"""What options of other programs are called here."""
COMMANDS: dict[str, str] = {
    "start": "serve",
    "run": "serve",
    "up": "dev",
    "health": "doctor",
    "status": "doctor",
    "tail": "events tail",
    "logs": "events tail",
    "identify": "dev",
    "init": "org create",
    "update": "upgrade",
    "migrate": "upgrade",
}
"""What commands of other programs are called here."""


OPENED, CHANGED = "svc.command.opened", "svc.command.changed"
"""In the `meta` of a context: the data directory that its command is about, and whether it has committed something."""


class CommandGroup(click.Group):
    """A group whose help has the first sentence of each command, on several lines where it is long."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in the order of their names."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(10_000)) for name, command in found if command])


def clearer(error: click.UsageError) -> click.UsageError:
    """Return the error with a next step in its message; the same object if it has one already."""
    match error:
        case click.NoSuchOption(option_name=name, ctx=click.Context(command=click.Group()) as context) if (
            not error.possibilities
        ):
            following = f"Options go behind the command: `{context.command_path} COMMAND ... {name}`."
        case click.NoSuchOption(option_name=name, ctx=click.Context(command=command)) if OPTIONS.get(name) in _named(
            command
        ):
            following = f"Use {OPTIONS[name]}."
        case click.NoSuchCommand(command_name=name) if name in COMMANDS:
            following = f"Use `svc {COMMANDS[name]}`."
        case click.MissingParameter(param=click.Parameter(name="directory")):
            following = "Name the data directory, such as --data /var/lib/svc, or set SVC_DATA once for all commands."
        case click.BadParameter() if "not readable" in error.message:
            following = "Run the command as the user of the service, name a place that this user may read, or chown it."
        case _:
            return error
    said = error.message if isinstance(error, click.NoSuchOption | click.NoSuchCommand) else error.format_message()
    return click.UsageError(f"{said} {following}", error.ctx)


def _named(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


HEAD = "Examples:"


def examples(*lines: str, after: str = "") -> str:
    """Return the `epilog` of a command: the lines as they are under a heading, and a paragraph behind them."""
    shown = "\n".join(["\b", HEAD, *(f"  {line}" for line in lines)])
    return f"{shown}\n\n{after}" if after else shown


SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog=examples(
        "svc completion bash > ~/.local/share/bash-completion/completions/svc",
        'svc completion zsh > "${fpath[1]}/_svc"',
        "svc completion fish > ~/.config/fish/completions/svc.fish",
        "source <(svc completion bash)      # in this terminal only",
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell: commands, options and their values are completed with TAB.

    Bash needs version 4.4 or later. Open a new terminal after installing the script.
    """
    root = click.get_current_context().find_root()
    completer = get_completion_class(shell)
    assert completer is not None, "click has one for each of SHELLS"
    # The method of the base class: that of bash starts a bash to ask it for its version.
    click.echo(ShellComplete.source(completer(root.command, {}, "svc", "_SVC_COMPLETE")))
