"""What goes wrong by the user's hand, with the place."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple


class Problem(NamedTuple):
    """One mistake. `line` and `column` count from 1; 0 where there is no place inside a file."""

    message: str
    path: str
    file: str
    line: int
    column: int
    label: str
    help: str


class ConfigError(ValueError):
    """Everything that is wrong with a scenario, a file or an argument; str() is the picture the command prints.

    `problems` has them all, in the order of the file. The other attributes are the first one's:
    `path` (where in the scenario: "topology.links[2].bandwith"), `file`, `line`, `column` (from 1),
    `message` and `help` (the remedy: what was probably meant, else the names that are known).
    """

    def __init__(self, picture: str, problems: List[Dict[str, Any]]) -> None:
        super().__init__(picture, problems)
        self.problems = [Problem(**problem) for problem in problems]
        first = self.problems[0] if self.problems else Problem(picture, "", "", 0, 0, "", "")
        self.message, self.path, self.file = first.message, first.path, first.file
        self.line, self.column = first.line, first.column
        self.help = "; ".join(part for part in (first.label, first.help) if part)

    def __str__(self) -> str:
        return str(self.args[0]).rstrip()
