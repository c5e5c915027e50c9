"""`svc completion`: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from svc.cli.examples import examples

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
