"""One tree of errors, from a broken file to a refused frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class ArtemisError(Exception):
    """Root of every error that artemis_py raises on purpose."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding in a configuration file.

    ``severity`` is ``error`` (the file is refused), ``warning`` or ``note``; ``line`` counts from 1, 0 when unknown.
    """

    severity: str
    file: str
    line: int
    message: str
    value: str | None = None
    allowed: str | None = None
    suggestion: str | None = None

    def __str__(self) -> str:
        parts = [f"{self.file}:{self.line}: {self.message}"]
        if self.value is not None:
            parts.append(f"found {self.value!r}")
        if self.allowed is not None:
            parts.append(f"allowed: {self.allowed}")
        if self.suggestion is not None:
            parts.append(f"did you mean {self.suggestion!r}?")
        return "; ".join(parts)


class ConfigError(ArtemisError):
    """A configuration that is refused; carries every problem found, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)


class SelectorError(ArtemisError):
    """A filter text that does not parse; ``line`` and ``column`` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{message} (line {line}, column {column})")
        self.line = line
        self.column = column


class MatchError(ArtemisError):
    """A ``match`` that no address-setting or security-setting may have."""


class BrokerError(ArtemisError):
    """The broker refuses a request of a client; the text goes to the client."""


class NotFoundError(BrokerError):
    """An address, queue or subscription that does not exist and may not be created."""


class AddressFullError(BrokerError):
    """``address-full-policy`` FAIL: the address holds as much as it may."""


class QueueFullError(BrokerError):
    """``overflow-policy`` REJECT: a queue that the message would come to is full."""


class DuplicateError(BrokerError):
    """A transaction carries a duplicate id that the address has seen before."""


class LimitError(BrokerError):
    """A limit of the acceptor or queue is reached (consumers, subscriptions, transaction size)."""


class PerfError(ArtemisError):
    """A measurement that cannot be made or does not add up: no broker, an ERROR frame, a stall, a wrong count."""


class PipelineError(ArtemisError):
    """A Spark job that cannot run or go on: missing Java, an option or column that is wrong, data gone, a broker that
    refuses.
    """
