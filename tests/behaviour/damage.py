"""Ways to damage a ledger, and to write one by hand."""

from __future__ import annotations

import hashlib
import re

LINK = re.compile(rb'"prev":"[0-9a-f]{32}"')


def sealed(body: bytes) -> bytes:
    """A line over these bytes, as a writer would end it."""
    return body + b',"hash":"' + hashlib.sha256(body).hexdigest()[:32].encode() + b'"}'


def resealed(data: bytes) -> bytes:
    """These lines with links and hashes that fit: what some other writer could have written."""
    lines, prev = [], b"0" * 32
    for line in data.splitlines():
        body = LINK.sub(b'"prev":"' + prev + b'"', line[: line.rindex(b',"hash":"')])
        lines.append(sealed(body))
        prev = lines[-1][-34:-2]
    return b"".join(line + b"\n" for line in lines)
