"""``artemis-py completion SHELL``: the script with which a shell completes what may stand where the cursor is:
commands, actions, options, and names that the broker knows.

A script asks with a hidden command: ``artemis-py __complete SHELL WORDS…``, the last of which is being written. It gets
one candidate a line in the form of that shell, ``:files`` where names of files fit, and ``:more`` if no blank follows.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, final
from urllib.parse import urlencode

from artemis_py.cli.interrupt import PROGRAM
from artemis_py.cli.main import ASKING, COMMANDS, command_of
from artemis_py.errors import ArtemisError
from artemis_py.terminal_output import escaped, say_made

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


_TIMEOUT_S: Final = 1.0
_NAMES_MAX: Final = 200
_TEXT_MAX: Final = 80
_FILES: Final = ":files"
_MORE: Final = ":more"
_SHELL_SPECIAL: Final = re.compile(r"([^\w@%+=:,./~-])")
_LISTS: Final = {
    "queue": ("queues", "name"),
    "address": ("addresses", "name"),
    "connection": ("connections", "connectionID"),
    "cursor": ("cursors", "name"),
}
"""The argument that names something, its list, and the field with its name."""
_FILE_METAVARS: Final = frozenset({"FILE", "PATH", "DIR", "DIRECTORY", "WHERE"})


@final
class Candidate(NamedTuple):
    """A word, and what it means. ``goes_on``: more follows without a blank."""

    word: str
    meaning: str = ""
    goes_on: bool = False


@final
class _Place:
    """Where the cursor is, after the words before it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser
        self.given = argparse.Namespace()
        self.awaits: argparse.Action | None = None
        """The option whose value comes next."""
        self._positionals = _positionals(parser)

    @property
    def positional(self) -> argparse.Action | None:
        """The positional argument that comes next."""
        return self._positionals[0] if self._positionals else None

    def pass_word(self, word: str) -> None:
        """A word is complete."""
        if self.awaits is not None:
            setattr(self.given, self.awaits.dest, word)
            self.awaits = None
        elif word.startswith("-") and word != "-":
            name, equals, value = word.partition("=")
            option = self.parser._option_string_actions.get(name)
            if option is not None and option.nargs != 0:
                if equals:
                    setattr(self.given, option.dest, value)
                else:
                    self.awaits = option
        else:
            self._pass_positional(word)

    def _pass_positional(self, word: str) -> None:
        if not self._positionals:
            return
        action = self._positionals[0]
        if isinstance(action, argparse._SubParsersAction):
            parser = action.choices.get(word)
            if parser is not None:
                self.parser = parser
                self._positionals = _positionals(parser)
            return
        setattr(self.given, action.dest, word)
        if action.nargs not in ("*", "+"):
            self._positionals = self._positionals[1:]


def _positionals(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if not action.option_strings]


def candidates(words: Sequence[str]) -> list[Candidate]:
    """What the last of the words may become."""
    *before, last = words or [""]
    if not before:
        return [Candidate(name, meaning) for name, (_, meaning) in COMMANDS.items() if name.startswith(last)]
    if before[0] not in COMMANDS:
        return []
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} {before[0]}")
    command_of(before[0]).add_arguments(parser)
    place = _Place(parser)
    for word in before[1:]:
        place.pass_word(word)
    name, equals, value = last.partition("=")
    if place.awaits is None and equals and name in place.parser._option_string_actions:
        option = place.parser._option_string_actions[name]
        values = _values(option, place, value)
        return [one if one.word == _FILES else one._replace(word=f"{name}={one.word}") for one in values]
    if place.awaits is not None:
        return list(_values(place.awaits, place, last))
    if last.startswith("-"):
        return [one for one in _options(place.parser) if one.word.startswith(last)]
    return [] if place.positional is None else list(_values(place.positional, place, last))


def _options(parser: argparse.ArgumentParser) -> Iterator[Candidate]:
    for action in parser._actions:
        for name in action.option_strings:
            if name.startswith("--") and action.help != argparse.SUPPRESS:
                yield Candidate(name, (action.help or "").replace("%%", "%"))


def _values(action: argparse.Action, place: _Place, written: str) -> Iterator[Candidate]:
    """The values of an argument that begin with what is written."""
    for one in _all_values(action, place, written):
        if one.word == _FILES or one.word.startswith(written):
            yield one


def _all_values(action: argparse.Action, place: _Place, written: str) -> Iterator[Candidate]:
    if isinstance(action, argparse._SubParsersAction):
        for one in action._choices_actions:
            yield Candidate(one.dest, one.help or "")
    elif action.choices is not None:
        yield from (Candidate(str(choice)) for choice in action.choices)
    elif action.dest == "context" or (action.dest == "name" and "artemis-py context" in place.parser.prog):
        yield from _contexts()
    elif action.dest in _LISTS:
        yield from _known(action.dest, place.given, written)
    elif action.dest in ("sort", "fields", "where"):
        yield from _fields(action.dest, place, written)
    elif str(action.metavar) in _FILE_METAVARS:
        yield Candidate(_FILES)


def _contexts() -> Iterator[Candidate]:
    from artemis_py.cli.context import Contexts

    try:
        contexts = Contexts.read()
    except ArtemisError:
        return
    for name, fields in contexts.by_name.items():
        yield Candidate(name, fields.get("url") or fields.get("stomp-url", ""))


def _known(what: str, given: argparse.Namespace, written: str) -> Iterator[Candidate]:
    """Names that the broker knows, if it answers at once."""
    from artemis_py.cli.broker_http import BrokerHttp  # the script alone is printed at the start of each shell

    names = ("url", "context", "user", "password_file", "token_file", "ca_file", "certificate_file", "key_file")
    args = argparse.Namespace(no_verify=False, **dict.fromkeys(names))
    vars(args).update({name: value for name, value in vars(given).items() if name in names})
    list_name, field = _LISTS[what]
    query = [("fields", field), ("sort", field), ("size", str(_NAMES_MAX))]
    if written and what != "connection":
        query.append(("where", f"{field}~{written}"))
    try:
        rows = json.loads(BrokerHttp.of(args, _TIMEOUT_S).ask(f"/api/{list_name}?{urlencode(query)}"))["data"]
    except (ArtemisError, ValueError, KeyError, TypeError):
        return
    for row in rows:
        yield Candidate(str(row[field]))


def _fields(dest: str, place: _Place, written: str) -> Iterator[Candidate]:
    """The fields of a list; several with commas between in ``--fields``."""
    operation = place.parser.get_default("operation")
    kind = None if operation is None else operation.lists
    if kind is None:
        return
    before, comma, _ = written.rpartition(",") if dest == "fields" else ("", "", "")
    for field in kind.fields.values():
        yield Candidate(f"{before}{comma}{field.name}", field.sentence, goes_on=dest != "sort")


# ---- for each shell --------------------------------------------------------------------------------


def answer(shell: str, words: Sequence[str]) -> int:
    """Print the candidates in the form of a shell."""
    cut = 0
    if shell == "bash":
        words = _split(words[0] if words else "")[1:]
        cut = max(words[-1].rfind(":"), words[-1].rfind("=")) + 1 if words else 0
    found = candidates(words)
    for one in found:
        say_made(_line(one, shell, cut))
    if found and all(one.goes_on for one in found):
        say_made(_MORE)
    return 0


def _line(one: Candidate, shell: str, cut: int) -> str:
    if one.word == _FILES:
        return _FILES
    word, meaning = escaped(one.word), escaped(one.meaning)[:_TEXT_MAX]
    if shell == "bash":  # it takes a colon and an equals sign for the end of a word
        return _SHELL_SPECIAL.sub(r"\\\1", word[cut:])
    if shell == "zsh":
        return f"{word.replace(':', chr(92) + ':')}:{meaning}"
    return f"{word}\t{meaning}" if meaning else word


def _split(line: str) -> list[str]:
    """The words of a line as far as it is written; the last one is empty behind a blank."""
    for end in ("", "'", '"', "\\"):
        try:
            words = shlex.split(line + end)
        except ValueError:
            continue
        is_new = not end and line[-1:].isspace() and not line.endswith("\\ ")
        return [*words, ""] if is_new or not words else words
    return [""]
