"""``artemis-py completion SHELL``: the script with which a shell completes the words of this command."""

from __future__ import annotations

import argparse
from typing import Final

from artemis_py.cli.main import ASKING
from artemis_py.shown import say_made

HELP: Final = "print a script with which the shell completes words"

_BASH: Final = f"""\
# Completion of artemis-py for bash:  source <(artemis-py completion bash)
_artemis_py() {{
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$2")
        elif [[ $line == :more ]]; then
            compopt -o nospace 2>/dev/null
        else
            COMPREPLY+=("$line")
        fi
    done < <("$1" {ASKING} bash "${{COMP_LINE:0:COMP_POINT}}" 2>/dev/null)
}}
complete -F _artemis_py artemis-py
"""
_ZSH: Final = f"""\
#compdef artemis-py
# Completion of artemis-py for zsh:  source <(artemis-py completion zsh)
# or, in a folder of $fpath:         artemis-py completion zsh > _artemis-py
_artemis_py() {{
    local line wants_files=0
    local -a found
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            wants_files=1
        elif [[ $line != :more ]]; then
            found+=("$line")
        fi
    done < <("${{words[1]}}" {ASKING} zsh "${{(@)words[2,CURRENT]}}" 2>/dev/null)
    (( $#found )) && _describe artemis-py found
    (( wants_files )) && _files
    return 0
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _artemis_py "$@"
else
    compdef _artemis_py artemis-py
fi
"""
_FISH: Final = f"""\
# Completion of artemis-py for fish:  artemis-py completion fish | source
function __artemis_py_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] {ASKING} fish $words[2..-1] 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else if test "$line" != :more
            echo $line
        end
    end
end
complete -c artemis-py -f -a '(__artemis_py_complete)'
"""
SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``completion SHELL``."""
    parser.add_argument("shell", choices=SCRIPTS, help="for which shell")
    parser.epilog = (
        "bash:  echo 'source <(artemis-py completion bash)' >> ~/.bashrc    "
        "zsh:  echo 'source <(artemis-py completion zsh)' >> ~/.zshrc    "
        "fish:  artemis-py completion fish > ~/.config/fish/completions/artemis-py.fish"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the script."""
    say_made(SCRIPTS[args.shell], end="")
    return 0
