"""T-SQL text into tokens: enough to tell statements apart and to read procedural statements and DDL."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*)
  | (?P<comment>/\*)
  | (?P<string>[nN]?'(?:[^']|'')*'?)
  | (?P<bracket>\[(?:[^\]]|\]\])*\]?)
  | (?P<quoted>"(?:[^"]|"")*"?)
  | (?P<binary>0[xX][0-9a-fA-F]*)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<variable>@@?[\w$\#@]+)
  | (?P<word>[^\W\d][\w$\#@]*|\#{1,2}[\w$\#@]+)
  | (?P<pseudo>%%[a-zA-Z]+%%)
  | (?P<operator><>|!=|<=|>=|!<|!>|\+=|-=|\*=|/=|::|.)
    """,
    re.VERBOSE | re.DOTALL,
)

# docs: Reserved Keywords (Transact-SQL); without PRECISION, which JDBC asks for by its bare name
_RESERVED = (
    "ADD ALL ALTER AND ANY AS ASC AUTHORIZATION BACKUP BEGIN BETWEEN BREAK BROWSE BULK BY CASCADE CASE CHECK "
    "CHECKPOINT CLOSE CLUSTERED COALESCE COLLATE COLUMN COMMIT COMPUTE CONSTRAINT CONTAINS CONTAINSTABLE CONTINUE "
    "CONVERT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DBCC "
    "DEALLOCATE DECLARE DEFAULT DELETE DENY DESC DISK DISTINCT DISTRIBUTED DOUBLE DROP DUMP ELSE END ERRLVL "
    "ESCAPE EXCEPT EXEC EXECUTE EXISTS EXIT EXTERNAL FETCH FILE FILLFACTOR FOR FOREIGN FREETEXT FREETEXTTABLE "
    "FROM FULL FUNCTION GOTO GRANT GROUP HAVING HOLDLOCK IDENTITY IDENTITY_INSERT IDENTITYCOL IF IN INDEX INNER "
    "INSERT INTERSECT INTO IS JOIN KEY KILL LEFT LIKE LINENO LOAD MERGE NATIONAL NOCHECK NONCLUSTERED NOT NULL "
    "NULLIF OF OFF OFFSETS ON OPEN OPENDATASOURCE OPENQUERY OPENROWSET OPENXML OPTION OR ORDER OUTER OVER PERCENT "
    "PIVOT PLAN PRIMARY PRINT PROC PROCEDURE PUBLIC RAISERROR READ READTEXT RECONFIGURE REFERENCES "
    "REPLICATION RESTORE RESTRICT RETURN REVERT REVOKE RIGHT ROLLBACK ROWCOUNT ROWGUIDCOL RULE SAVE SCHEMA "
    "SECURITYAUDIT SELECT SESSION_USER SET SETUSER SHUTDOWN SOME STATISTICS SYSTEM_USER TABLE TABLESAMPLE "
    "TEXTSIZE THEN TO TOP TRAN TRANSACTION TRIGGER TRUNCATE TRY_CONVERT TSEQUAL UNION UNIQUE UNPIVOT UPDATE "
    "UPDATETEXT USE USER VALUES VARYING VIEW WAITFOR WHEN WHERE WHILE WITH WRITETEXT"
)
RESERVED = frozenset(_RESERVED.split())


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its place.

    :param kind: word, string, bracket, quoted, binary, number, variable, operator or end
    :param start: offset in the batch
    :param line: 1-based
    """

    kind: str
    text: str
    start: int
    end: int
    line: int

    @property
    def upper(self) -> str:
        """The text in upper case if it is a word or an operator, else ''."""
        return self.text.upper() if self.kind in ("word", "operator") else ""

    @property
    def is_name(self) -> bool:
        """Whether the token can be (part of) an object name."""
        return self.kind in ("word", "bracket", "quoted")

    @property
    def name(self) -> str:
        """The name that an identifier stands for, or a string's contents."""
        if self.kind == "bracket":
            return self.text[1:-1].replace("]]", "]")
        if self.kind == "quoted":
            return self.text[1:-1].replace('""', '"')
        if self.kind == "string":
            return self.text[self.text.index("'") + 1 : -1].replace("''", "'")
        return self.text


def tokenize(text: str) -> list[Token]:
    """Tokens without blanks and comments, and an end token.

    :raises SqlError: 105 for an unclosed string or name, 113 for an unclosed comment
    :raises Unsupported: for %%physloc%% and the like, which docs do not know
    """
    tokens: list[Token] = []
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None
        assert match.lastgroup is not None
        kind, end = match.lastgroup, match.end()
        if kind == "comment":
            end = _comment_end(text, position, line)
        elif kind == "pseudo":
            raise Unsupported(match.group(), line=line)
        elif kind != "space":
            _check_closed(match.group(), kind, line)
            tokens.append(Token(kind, match.group(), position, end, line))
        line += text.count("\n", position, end)
        position = end
    tokens.append(Token("end", "", position, position, line))
    return tokens


def _comment_end(text: str, start: int, line: int) -> int:
    depth, position = 0, start  # comments nest
    for match in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if match.group() == "/*" else -1
        position = match.end()
        if depth == 0:
            return position
    raise SqlError.of(113, line=line)


def _check_closed(text: str, kind: str, line: int) -> None:
    closing = {"string": "'", "bracket": "]", "quoted": '"'}.get(kind)
    if closing is None:
        return
    inner = text[text.index("'") + 1 if kind == "string" else 1 :]
    if not inner.endswith(closing) or (len(inner) - len(inner.rstrip(closing))) % 2 == 0:
        raise SqlError.of(105, inner[:30], line=line)


def syntax_error(token: Token) -> SqlError:
    """Error 102, or 156 at a reserved word."""
    return error_near(token.text, token.line)


def error_near(text: str, line: int) -> SqlError:
    """Error 102, or 156 at a reserved word."""
    first = text.split(maxsplit=1)[0] if text else ""
    return SqlError.of(156, first, line=line) if first.upper() in RESERVED else SqlError.of(102, text, line=line)


class Cursor:
    """A position in a list of tokens that ends with an end token."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.tokens, self.text, self.position = tokens, text, 0

    @property
    def token(self) -> Token:
        """The token to read next."""
        return self.tokens[self.position]

    def peek(self, ahead: int = 1) -> Token:
        """A token further on."""
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        """Read a token."""
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words or operators."""
        return all(self.peek(i).upper == word for i, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Read these words if they come next."""
        if not self.at(*words):
            return False
        self.position += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Read these words.

        :raises SqlError: 102
        """
        for word in words:
            if not self.take(word):
                raise syntax_error(self.token)

    def name(self) -> str:
        """Read an identifier."""
        if not self.token.is_name:
            raise syntax_error(self.token)
        return self.next().name

    def dotted(self) -> tuple[str, ...]:
        """Read a name of up to four parts; left-out parts are ''."""
        parts = [self.name()]
        while self.take("."):
            parts.append("" if self.at(".") else self.name())
        return tuple(parts)

    def end(self) -> None:
        """Be at the end.

        :raises SqlError: 102
        """
        self.take(";")
        if self.token.kind != "end":
            raise syntax_error(self.token)

    def group(self) -> list[Token]:
        """Read a parenthesised group; its inner tokens."""
        self.expect("(")
        start, depth = self.position, 1
        while depth:
            token = self.next()
            if token.kind == "end":
                raise syntax_error(token)
            depth += {"(": 1, ")": -1}.get(token.upper, 0)
        return self.tokens[start : self.position - 1]

    def source(self, tokens: list[Token]) -> str:
        """The text that tokens were read from."""
        return self.text[tokens[0].start : tokens[-1].end] if tokens else ""


def sub_cursor(cursor: Cursor, tokens: list[Token]) -> Cursor:
    """A cursor over some tokens of another."""
    last = tokens[-1] if tokens else cursor.token
    return Cursor([*tokens, Token("end", "", last.end, last.end, last.line)], cursor.text)
