"""Columns of equal length with names: what a result's tables are, with or without pandas."""

from __future__ import annotations

import csv as _csv
import io
import operator
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple, Union, overload

Column = Union[memoryview, "Words", List[Any]]


class Words(Sequence):
    """A column of few distinct words: `codes[i]` is the number of row i's word in `words`."""

    def __init__(self, codes: memoryview, words: List[str]) -> None:
        self.codes, self.words = codes, words

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self.words[code] for code in self.codes[index]]
        return self.words[self.codes[index]]

    def __reduce__(self):
        return _words, (self.codes.format, self.codes.tobytes(), self.words)


def _words(form: str, buffer: bytes, words: List[str]) -> Words:
    return Words(memoryview(buffer).cast(form), words)


def _column(value: Any) -> Column:
    """From the binding's (format, buffer[, words]) without a copy."""
    if isinstance(value, list):
        return value
    values = memoryview(value[1]).cast(value[0])
    return Words(values, value[2]) if len(value) == 3 else values


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Table(Sequence):
    """Rows and columns, read-only. `table["bytes"]` is a column, `table[["id", "bytes"]]` a table of these,
    `"bytes" in table` whether there is one, `table[0]` a row (a dict), `for row in table` goes over rows,
    `to_pandas()` makes a DataFrame. Figures are SI: seconds, bytes, bytes per second, shares.
    """

    def __init__(self, name: str, columns: Mapping[str, Column]) -> None:
        self.name = name
        self._columns = dict(columns)

    @classmethod
    def _of_rows(cls, name: str, rows: Iterable[Mapping[str, Any]], keys: Sequence[str] = ()) -> "Table":
        """Nested objects become columns: {"idle_seconds": {"host": 1}} -> idle_seconds.host. `keys` come first."""
        flat = [_flat(row) for row in rows]
        names = [*keys, *(key for key in (flat[0] if flat else ()) if key not in keys)]
        return cls(name, {key: [row[key] for row in flat] for key in names})

    @classmethod
    def _of_columns(cls, name: str, columns: Mapping[str, Any]) -> "Table":
        return cls(name, {key: _column(value) for key, value in columns.items()})

    @property
    def columns(self) -> List[str]:
        """Names, in order."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) if self._columns else 0

    @overload
    def __getitem__(self, key: str) -> Column: ...
    @overload
    def __getitem__(self, key: int) -> Dict[str, Any]: ...
    @overload
    def __getitem__(self, key: List[str]) -> "Table": ...
    @overload
    def __getitem__(self, key: slice) -> List[Dict[str, Any]]: ...

    def __getitem__(self, key):
        if isinstance(key, str):
            try:
                return self._columns[key]
            except KeyError:
                raise KeyError(f"{self.name} has no column {key!r}; columns: {', '.join(self.columns)}") from None
        if isinstance(key, list) and all(isinstance(name, str) for name in key):
            return Table(self.name, {name: self[name] for name in key})
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        try:
            key = operator.index(key)
        except TypeError:
            raise TypeError("a table has columns by name, lists of names, and rows by number; found "
                            f"{type(key).__name__}") from None
        if not -len(self) <= key < len(self):
            raise IndexError(f"{self.name} has {len(self)} rows")
        return {name: column[key] for name, column in self._columns.items()}

    def __contains__(self, what: object) -> bool:
        """Whether there is a column of that name, or a row equal to that dict."""
        return what in self._columns if isinstance(what, str) else any(row == what for row in self)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return (dict(zip(self._columns, row)) for row in zip(*self._columns.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> Dict[str, List[Any]]:
        """{column: [values]}, plain Python values."""
        return {name: list(column) for name, column in self._columns.items()}

    def to_csv(self) -> str:
        """CSV with a line of names; numbers as they read back the same, nothing for None."""
        text = io.StringIO()
        writer = _csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self._columns.values()))
        return text.getvalue()

    def to_pandas(self):
        """A pandas DataFrame with the same columns, a row each. Numbers share this table's memory where they
        are one buffer (the timeline); words become categoricals. Needs pandas (python3-pandas).
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: apt install python3-pandas, or pip install pandas") from error
        return pandas.DataFrame({name: _series(column, pandas) for name, column in self._columns.items()}, copy=False)

    def __reduce__(self):
        columns = {name: (column.format, column.tobytes()) if isinstance(column, memoryview) else column
                   for name, column in self._columns.items()}
        return _table, (self.name, columns)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} rows>\n" + _plain(self._head(10), self.columns, len(self))

    def _repr_html_(self) -> str:
        return _html(self._head(20), self.columns, len(self))

    def _head(self, most: int) -> List[List[str]]:
        return [[_text(self._columns[name][i]) for name in self.columns] for i in range(min(most, len(self)))]


def _table(name: str, columns: Mapping[str, Any]) -> Table:
    return Table(name, {key: memoryview(value[1]).cast(value[0]) if isinstance(value, tuple) else value
                        for key, value in columns.items()})


def _flat(row: Mapping[str, Any]) -> Dict[str, Any]:
    flat: Dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": each for inner, each in value.items()})
        else:
            flat[key] = value
    return flat


def _series(column: Column, pandas: Any) -> Any:
    if isinstance(column, list):
        return column
    import numpy
    if isinstance(column, memoryview):
        return numpy.asarray(column)
    words = list(dict.fromkeys(column.words))
    codes = numpy.asarray(column.codes)
    if len(words) != len(column.words):  # categories are distinct; the words of a column need not be
        place = {word: i for i, word in enumerate(words)}
        codes = numpy.asarray([place[word] for word in column.words])[codes]
    return pandas.Categorical.from_codes(codes, words)


def _plain(rows: List[List[str]], names: List[str], total: int) -> str:
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in [names, *rows]]
    if total > len(rows):
        lines.append(f"... {total - len(rows)} more")
    return "\n".join(lines)


def _html(rows: List[List[str]], names: List[str], total: int) -> str:
    import html
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    more = f"<p>{total - len(rows)} more rows</p>" if total > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def bars_html(head: Sequence[str], rows: Iterable[Tuple[Sequence[str], float]], printed: str) -> str:
    """A table for notebooks whose last column is a bar a row: (cells, share from -1 to 1); what the command prints is
    folded away below it.
    """
    import html
    lines = []
    for cells, share in rows:
        width, colour = round(100 * min(1.0, abs(share)), 1), "#4477aa" if share >= 0 else "#cc6677"
        bar = f'<div style="width:10em"><div style="width:{width}%;height:0.8em;background:{colour}"></div></div>'
        lines.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + f"<td>{bar}</td></tr>")
    titles = "".join(f"<th>{html.escape(title)}</th>" for title in (*head, ""))
    return (f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
            f"<details><summary>as the command prints it</summary><pre>{html.escape(printed)}</pre></details>")
