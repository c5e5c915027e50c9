"""What to do after a command line that cannot be read, where click's own message does not say it.

What may live here: from click's errors to clearer ones; and groups of commands, whose help is cut nowhere.
"""

from __future__ import annotations

import click

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
    "upgrade": "serve",
}
"""What commands of other programs are called here."""


class CommandGroup(click.Group):
    """A group whose help has the first sentence of each command, on several lines where it is long."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in the order of their names."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(10_000)) for name, command in found if command])


def clearer(error: click.UsageError) -> click.UsageError:
    """The error with what to do next in its message; the same one where it says enough."""
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
            following = "Run the command as the user of the service, or name a place that this user may read."
        case _:
            return error
    said = error.message if isinstance(error, click.NoSuchOption | click.NoSuchCommand) else error.format_message()
    return click.UsageError(f"{said} {following}", error.ctx)


def _named(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}
