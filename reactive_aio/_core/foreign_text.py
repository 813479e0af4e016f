"""What others have written, as errors, reports and terminals may show it.

A peer chooses the texts of its errors, and a URL may contain a password. `printable` is for every
text of others that people read, `without_secrets` for every text that may contain a URL.
"""

import re
from typing import Final
from unicodedata import category

_KEPT: Final = "\n\t\u200c\u200d"  # the joiners are part of words, and of emoji
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""The categories of control characters, marks of direction, surrogates, and other ends of lines."""
_MOST: Final = 500

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s'\"<>]*")
_USER: Final = re.compile(
    r"//(?:"
    r"[^/?#]*@"  # of the last @ before the path
    r"|[^/?#@:\[]*:(?!\d*(?:[/?#]|$)).*@"  # a password with characters that had to be quoted
    r")",
)
_VALUE: Final = re.compile(r"([?&;#](?!(?:route|n)=)[^=&;#]*=)[^&;#]*")
_BARE_QUERY: Final = re.compile(r"\?[^=&;#]+(?=$|#)")
_HIDDEN: Final = "***"


def printable(text: str) -> str:
    """*text* with escapes such as ``\\x1b`` in place of what a terminal would act upon.

    Ends of lines and tabs stay: who shows one line alone, or indents the others, sees to that.
    """
    if text.isprintable():
        return text
    return "".join(
        each
        if each in _KEPT or each.isprintable() or category(each) not in _UNSEEN
        else each.encode("unicode_escape").decode()
        for each in text
    )


def excerpt(text: str, most: int = _MOST) -> str:
    """The beginning of a *text* of a peer, printable: its length is the peer's choice as well."""
    return printable(text) if len(text) <= most else f"{printable(text[:most])}…"


def without_secrets(text: str) -> str:
    """*text* without the user, the password and the parameters of the URLs in it.

    The parameters ``route`` and ``n``, which addresses of RSocket have, stay.
    """
    return _URL.sub(_hide, text) if "://" in text else text


def why_unreadable(url: str, error: ValueError) -> str:
    """What *error* of the standard library says about *url*: it may quote a part of a password."""
    return "it cannot be read" if "@" in url else str(error)


def _hide(url: re.Match[str]) -> str:
    text = _USER.sub(f"//{_HIDDEN}@", url[0], count=1)
    text = _BARE_QUERY.sub(f"?{_HIDDEN}", text)
    return _VALUE.sub(rf"\1{_HIDDEN}", text)
