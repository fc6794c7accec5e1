"""A page that has to be whole without a network: what may be in it, what is in it, and texts that try to break out of it."""

import json
import sqlite3
from html.parser import HTMLParser


def words_of(text: str) -> set[str]:
    return set(text.split())


TAGS = words_of(
    "html head meta title style body nav a h1 h2 h3 p small section div table thead tbody tr th td figure figcaption"
    " svg line text rect circle path ul li dl dt dd br"
)
ATTRIBUTES = words_of(
    "lang charset http-equiv content name scope id href class viewbox width height role aria-hidden"
    " x y x1 x2 y1 y2 cx cy r d text-anchor textlength lengthadjust"
)


class Seen(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.words: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.words.append((self.open[-1], data.strip()))

    def of(self, tag):
        return [words for inside, words in self.words if inside == tag]


HOSTILE = {
    "markup": "<img src=x onerror=alert(1)><b>",
    "end of script": "</script></style></title></svg><script>alert(1)</script>",
    "attribute": '" onload="alert(1)" x=\'',
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "comment": "<!--]]>-->&lt;&#x3c;script&#x3e;",
    "right to left": "\u202etxt.exe\u202c\u2066\u05d0\u05d1\u200f",
    "controls": "a\x00b\x1b[31mc\x7f\u2028",
    "a long text": "A" * (1 << 16),
}


def spoil(db: sqlite3.Connection, text: str) -> set[str]:
    """Put the text before every text in every table, into JSON as key and value; the columns that took it."""
    taken = set()
    db.execute("PRAGMA foreign_keys = OFF")
    data = json.dumps({"cloud": text, "instance": text, text: text})
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        for column in db.execute(f"PRAGMA table_info({table})").fetchall():
            if column["type"] != "TEXT" or not db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]:
                continue
            name = column["name"]
            where = f"WHERE {name} IS NOT NULL" if name == "reason" else ""
            for value in (f"? || coalesce({name}, '')", "?"):
                try:
                    db.execute(
                        f"UPDATE {table} SET {name} = {value} {where}", (data if value == "?" else text,)
                    )
                except sqlite3.IntegrityError:
                    continue  # the schema knows which words it may hold, or that it is JSON
                taken.add(f"{table}.{name}")
                break
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    return taken
