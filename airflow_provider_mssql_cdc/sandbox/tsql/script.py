"""A batch into statements: T-SQL needs no semicolons, so a statement ends where the next one's first word stands."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, Token, syntax_error, tokenize
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.tracking_options import check

STARTERS = frozenset((
    "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "DECLARE", "SET", "IF", "BEGIN", "EXEC", "EXECUTE",
    "PRINT", "RAISERROR", "THROW", "COMMIT", "ROLLBACK", "SAVE", "USE", "CREATE", "ALTER", "DROP", "TRUNCATE",
    "GRANT", "REVOKE", "DENY", "WHILE", "RETURN", "KILL", "WAITFOR", "BREAK", "CONTINUE", "RECONFIGURE", "REVERT",
    "DBCC", "BACKUP", "RESTORE", "OPEN", "FETCH", "CLOSE", "DEALLOCATE", "GOTO", "CHECKPOINT", "BULK", "ELSE", "END",
))  # fmt: skip
_LACKING = frozenset(("MERGE", "BULK", "BACKUP", "RESTORE", "OPEN", "FETCH", "CLOSE", "DEALLOCATE", "DBCC", "KILL"))
QUERIES = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"})


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement without inner statements.

    :param verb: its first word in upper case; EXEC also for a call without it
    """

    verb: str
    tokens: tuple[Token, ...]
    batch: str

    @property
    def line(self) -> int:
        """The line it starts on."""
        return self.tokens[0].line

    @property
    def text(self) -> str:
        """Its text as written."""
        return self.batch[self.tokens[0].start : self.tokens[-1].end]

    def split(self, place: int) -> tuple[str, Statement]:
        """The text before a token, and the EXEC that begins with it."""
        head = self.batch[self.tokens[0].start : self.tokens[place].start]
        return head, Statement("EXEC", self.tokens[place:], self.batch)

    def cursor(self) -> Cursor:
        """A cursor over its tokens."""
        last = self.tokens[-1]
        return Cursor([*self.tokens, Token("end", "", last.end, last.end, last.line)], self.batch)


@dataclass(frozen=True, slots=True)
class If:
    """IF with its condition's text."""

    condition: str
    line: int
    then: Node
    otherwise: Node | None


@dataclass(frozen=True, slots=True)
class While:
    """WHILE with its condition's text."""

    condition: str
    line: int
    body: Node


@dataclass(frozen=True, slots=True)
class Try:
    """BEGIN TRY ... END TRY BEGIN CATCH ... END CATCH"""

    body: Block
    handler: Block


@dataclass(frozen=True, slots=True)
class Block:
    """BEGIN ... END, or a whole batch."""

    body: tuple[Node, ...]


Node = Statement | If | While | Try | Block


@functools.lru_cache(maxsize=256)
def read_batch(text: str) -> Block:
    """Split a batch and check the syntax of its queries, before anything of it runs.

    :raises SqlError: 102, 105, 113; 50000 for statements that the sandbox does not have
    """
    cursor = Cursor(tokenize(text), text)
    if _is_inline_function(cursor):
        return Block((Statement("CREATE", tuple(cursor.tokens[:-1]), text),))  # it has its batch to itself
    _refuse_modules(cursor)
    body: list[Node] = []
    while cursor.token.kind != "end":
        if not cursor.take(";"):
            body.append(_node(cursor, first=not body))
    _check_loops(Block(tuple(body)))
    return Block(tuple(body))


def _is_inline_function(cursor: Cursor) -> bool:
    words = [token.upper for token in cursor.tokens]
    return words[:2] == ["CREATE", "FUNCTION"] and ("RETURNS", "TABLE") in itertools.pairwise(words)


def _refuse_modules(cursor: Cursor) -> None:
    """Refuse what must stand alone in its batch and contains statements."""
    words = [token.upper for token in cursor.tokens[:4]]
    kind = words[3:] if words[1:3] == ["OR", "ALTER"] else words[1:]
    if words[0] in _DEFINITIONS and kind and kind[0] in ("TRIGGER", "PROCEDURE", "PROC", "FUNCTION", "VIEW"):
        raise unsupported(f"{words[0]} {kind[0]}", cursor.token.line)


def _check_loops(node: Node) -> None:
    """Refuse BREAK and CONTINUE outside a loop."""
    if isinstance(node, Statement) and node.verb in ("BREAK", "CONTINUE"):
        message = f"Cannot use a {node.verb} statement outside the scope of a WHILE statement."
        raise SqlError(135 if node.verb == "BREAK" else 136, message, severity=15, line=node.line)
    inner: tuple[Node | None, ...] = ()
    if isinstance(node, Block):
        inner = node.body
    elif isinstance(node, If):
        inner = (node.then, node.otherwise)
    elif isinstance(node, Try):
        inner = (node.body, node.handler)
    for each in inner:
        if each is not None:
            _check_loops(each)


def _node(cursor: Cursor, *, first: bool = False) -> Node:
    token = cursor.token
    word = token.upper
    if word == "IF":
        return _if(cursor)
    if word == "WHILE":
        return _while(cursor)
    if word == "GOTO":
        raise unsupported(word, token.line)
    if word == "BEGIN" and cursor.peek().upper not in ("TRAN", "TRANSACTION", "DISTRIBUTED"):
        if cursor.peek().upper in ("DIALOG", "CONVERSATION"):
            raise unsupported(f"BEGIN {cursor.peek().upper}", token.line)
        if cursor.at("BEGIN", "TRY"):
            return Try(_block(cursor, "TRY"), _block(cursor, "CATCH"))
        return _block(cursor)
    if word in ("ELSE", "END"):
        raise syntax_error(token)
    if word in STARTERS:
        return _statement(cursor)
    if first and token.is_name:
        return _statement(cursor, "EXEC")
    raise syntax_error(token)


def _if(cursor: Cursor) -> If:
    line = cursor.next().line
    condition = _until_statement(cursor)
    if not condition:
        raise syntax_error(cursor.token)
    text = cursor.source(condition)
    then = _node(cursor)
    cursor.take(";")
    otherwise = _node(cursor) if cursor.take("ELSE") else None
    return If(text, line, then, otherwise)


def _while(cursor: Cursor) -> While:
    line = cursor.next().line
    condition = _until_statement(cursor)
    if not condition:
        raise syntax_error(cursor.token)
    return While(cursor.source(condition), line, _node(cursor))


def _until_statement(cursor: Cursor) -> list[Token]:
    start, depth, cases = cursor.position, 0, 0
    while (token := cursor.token).kind != "end":
        word = token.upper
        if depth == 0 and cases == 0 and word in STARTERS:
            break
        cases += {"CASE": 1, "END": -1}.get(word, 0) if cases or word == "CASE" else 0
        depth += {"(": 1, ")": -1}.get(word, 0)
        cursor.next()
    return cursor.tokens[start : cursor.position]


def _block(cursor: Cursor, word: str = "") -> Block:
    cursor.expect(*filter(None, ("BEGIN", word)))
    body: list[Node] = []
    while not cursor.take("END"):
        if cursor.token.kind == "end":
            raise syntax_error(cursor.token)
        if not cursor.take(";"):
            body.append(_node(cursor))
    cursor.expect(*filter(None, (word,)))
    if not body and word != "CATCH":
        raise syntax_error(cursor.tokens[cursor.position - 1])
    return Block(tuple(body))


_DEFINITIONS = frozenset({"CREATE", "ALTER"})
_PERMISSIONS = frozenset({"GRANT", "REVOKE", "DENY"})
_DROPPED = frozenset({
    "USER", "ROLE", "TABLE", "INDEX", "SCHEMA", "DATABASE", "COLUMN", "CONSTRAINT", "DROP", "FUNCTION", "POLICY",
})  # fmt: skip
_ACTIONS = frozenset({"ADD", "ALTER", "DROP", "SET", "SWITCH", "MODIFY", "ENABLE", "DISABLE"})


def _continues(outer: list[str], word: str, following: Token) -> bool:
    """Whether a word that could start a statement belongs to the one being read.

    :param outer: the words read so far, in upper case, without what stands in parentheses
    """
    verb, last, rest = outer[0], outer[-1], outer[1:]
    if verb in _PERMISSIONS and not {"TO", "FROM"} & set(rest):
        return word in ("SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE", "EXEC", "ALTER", "CREATE", "WITH")
    if verb in _PERMISSIONS and (last, word) in (("WITH", "GRANT"), ("REVOKE", "GRANT")):
        return True
    if word == "WITH" and verb in _PERMISSIONS:
        return following.upper == "GRANT"
    if word == "IF":
        return last in _DROPPED and verb in ("DROP", "ALTER")
    if word == "WITH":
        return (
            following.text == "("
            or following.upper == "TIES"
            or verb in _DEFINITIONS
            or verb in ("RAISERROR", "EXEC", "EXECUTE", "BEGIN", "RECONFIGURE")
        )
    if word == "ROLLBACK":
        return last == "WITH" and verb == "ALTER"
    if word == "SELECT" and last in ("UNION", "ALL", "EXCEPT", "INTERSECT"):
        return True
    if verb == "WITH" and word in QUERIES:
        return not QUERIES & set(rest) or (word == "SELECT" and "INSERT" in rest and "SELECT" not in rest)
    if verb == "INSERT" and word == "BULK":
        return not rest
    if verb == "INSERT" and word in ("SELECT", "EXEC", "EXECUTE"):
        return not {"SELECT", "VALUES", "EXEC", "EXECUTE"} & set(rest)
    if word == "SET" and (verb == "UPDATE" or "UPDATE" in rest):
        return "SET" not in rest
    if verb in _DEFINITIONS and word in ("DELETE", "UPDATE"):
        return last == "ON"
    if verb in _DEFINITIONS and word == "SET" and last in ("DELETE", "UPDATE"):
        return True
    if verb == "ALTER" and word == "DROP" and following.upper == "MASKED":
        return True
    if verb == "ALTER" and word in _ACTIONS:
        return not _ACTIONS & set(rest)
    return word == "FETCH" and last in ("ROWS", "ROW")


def _statement(cursor: Cursor, verb: str = "") -> Statement:
    tokens = [cursor.next()]
    outer = [tokens[0].upper]
    depth, cases = 0, 0
    while (token := cursor.token).kind != "end":
        word = token.upper
        if depth == 0 and cases == 0:
            if word == ";":
                cursor.next()
                break
            if word in STARTERS and tokens[-1].text != "." and not _continues(outer, word, cursor.peek()):
                break
            outer.append(word)
        if word == "CASE":
            cases += 1
        elif word == "END" and cases:
            cases -= 1
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth < 0:
            raise syntax_error(token)
        tokens.append(cursor.next())
    if depth:
        raise syntax_error(tokens[-1])
    if outer[:2] == ["INSERT", "BULK"]:
        verb = "INSERT BULK"
        if tokens[0] is not cursor.tokens[0] or cursor.token.kind != "end":
            raise SqlError.of(428)
    statement = Statement(verb or tokens[0].upper.replace("EXECUTE", "EXEC"), tuple(tokens), cursor.text)
    if statement.verb in QUERIES and not inserts_procedure(tokens):
        parse(statement.text, statement.line)
    elif statement.verb == "DECLARE" and tokens[-1].kind != "variable" and tokens[1:2] and tokens[1].is_name:
        raise unsupported("DECLARE of a cursor", statement.line)
    elif outer[:2] == ["ALTER", "DATABASE"] and "CHANGE_TRACKING" in outer:
        check(statement.cursor())
    elif statement.verb in _LACKING:
        raise unsupported(statement.verb, statement.line)
    return statement


def inserts_procedure(tokens: Sequence[Token]) -> bool:
    """Whether the tokens are an INSERT ... EXEC."""
    return tokens[0].upper == "INSERT" and any(token.upper in ("EXEC", "EXECUTE") for token in tokens)
