"""The tree of all errors, from a broken file to a refused frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artemis_py.terminal_output import escaped


class ArtemisError(Exception):
    """Root of every error that artemis_py raises on purpose."""


class AdviceError(ArtemisError):
    """An error followed by lines of advice."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding in a configuration file.

    ``severity`` is ``error`` (the file is refused), ``warning`` or ``note``; ``line`` counts from 1 and is 0 if
    unknown. ``code`` is the kind of a warning or note, by which it can be silenced; errors have none.
    """

    severity: str
    file: str
    line: int
    message: str
    value: str | None = None
    allowed: str | None = None
    suggestion: str | None = None
    code: str = ""

    @property
    def place(self) -> str:
        """The file and the line, as far as known."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{escaped(self.place)}: {self.text}"

    @property
    def text(self) -> str:
        """What was found, without its place."""
        parts = [self.message]
        if self.value is not None:
            parts.append(f"found {self.value!r}")
        if self.allowed is not None:
            parts.append(f"allowed: {self.allowed}")
        if self.suggestion is not None:
            parts.append(f"did you mean {self.suggestion!r}?")
        return escaped("; ".join(parts))


class UsageError(ArtemisError):
    """The arguments of a command do not fit together."""


class ConfigError(ArtemisError):
    """A configuration is refused; carries every problem found, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)


class SelectorError(ArtemisError):
    """A selector is invalid; ``reason`` says why. ``line`` and ``column`` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        self.reason = f"{message} (line {line}, column {column})"
        super().__init__(f"selector: {self.reason}")
        self.line = line
        self.column = column


class MatchError(ArtemisError):
    """A ``match`` is invalid for address-settings and security-settings."""


class StorageError(ArtemisError):
    """The disk cannot keep what was confirmed. No step of a turn survives it: the broker stops."""


class BrokerError(ArtemisError):
    """The broker refuses a request of a client; the text goes to the client."""


class RefusedConfigurationError(BrokerError):
    """The configuration is read again and refused; ``problems`` are its errors, each with its place."""

    def __init__(self, text: str, problems: Sequence[str]) -> None:
        super().__init__(f"{text}: {'; '.join(problems)}")
        self.problems = list(problems)


class NotFoundError(BrokerError):
    """An address, queue or subscription does not exist and may not be created."""


class BadRequestError(BrokerError):
    """What an operator asks for makes no sense; the text says what is wrong with it."""


class AddressFullError(BrokerError):
    """``address-full-policy`` FAIL: the address is full."""


class QueueFullError(BrokerError):
    """``overflow-policy`` REJECT: a queue of the message is full."""


class DuplicateError(BrokerError):
    """A transaction has a duplicate id that the address has already received."""


class LimitError(BrokerError):
    """A limit of the acceptor or queue is reached (consumers, subscriptions, transaction size)."""


class NotAllowedError(BrokerError):
    """A user may not do this; the text names the user, the permission and the address."""


class AuthenticatorError(ArtemisError):
    """Nobody can tell now who somebody is: a directory does not answer, a file cannot be read. For the log only."""


class NotYetError(AuthenticatorError):
    """It will be known in a moment, such as when keys are being fetched: ask again, and hold no thread meanwhile."""


class CredentialsRefusedError(AuthenticatorError):
    """What was given to log in is wrong, and the text says why. It goes to the client, too, so it has nothing that
    helps to guess. With ``is_foreign`` it seems to be meant for another authenticator.
    """

    def __init__(self, message: str, *, is_foreign: bool = False) -> None:
        super().__init__(message)
        self.is_foreign = is_foreign


class StompError(ArtemisError):
    """A client of ours cannot write a header, or what came from a broker is no STOMP."""


class PerfError(ArtemisError):
    """A measurement failed or is inconsistent: no broker, an ERROR frame, a stall, a wrong count."""


class PipelineError(ArtemisError):
    """A Spark job cannot run or continue: missing Java, a wrong option or column, lost data, a refusing broker."""
