from collections.abc import Sequence

from headway.bulk import Answer, Known, Order

VERSION: int

def changed(prefix: str, paths: list[str], known: Sequence[Known]) -> list[int]: ...
def write(orders: list[Order]) -> list[Answer]: ...
