"""Holds what was written against its contract. Exit 0, or the first thing that is wrong."""

import inspect
import io
import json
import sys
from pathlib import Path

sys.path.insert(0, "src")
sys.dont_write_bytecode = True
FIELDS = json.loads(Path("schema/user.json").read_text())


def sample() -> dict[str, object]:
    return {name: 1 if kind == "int" else f"{name}@example.org" for name, kind in FIELDS.items()}


def user_protocol() -> None:
    from protocols.user import UserProtocol

    missing = {"id", "email", "password_hash"} - set(dir(UserProtocol))
    assert not missing, f"UserProtocol lacks {', '.join(sorted(missing))}"


def auth_interface() -> None:
    from protocols.auth import AuthInterface

    assert {"register", "login", "user_of"} <= set(dir(AuthInterface)), "AuthInterface lacks a method"


def user_model() -> None:
    from models.user import User, Users
    from protocols.user import UserProtocol

    users, user = Users(), User(**sample())
    assert isinstance(user, UserProtocol), "User does not implement UserProtocol"
    users.add(user)
    assert users.find(user.email) == user, "a user that was added is not found"


def auth_service() -> None:
    from protocols.auth import AuthInterface
    from services.auth import Auth

    for name, wanted in inspect.getmembers(AuthInterface, inspect.isfunction):
        if not name.startswith("_"):
            found = inspect.signature(getattr(Auth, name)).parameters
            assert list(found) == list(inspect.signature(wanted).parameters), f"Auth.{name} differs from AuthInterface"


def app() -> None:
    from app import create_app

    serve = create_app(b"secret")

    def call(method: str, path: str, body: object = None, token: str = "") -> tuple[str, dict[str, object]]:
        data, said = json.dumps(body or {}).encode(), []
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "HTTP_AUTHORIZATION": token}
        environ |= {"CONTENT_LENGTH": str(len(data)), "wsgi.input": io.BytesIO(data)}
        answer = b"".join(serve(environ, lambda status, headers: said.append(status)))
        return said[0][:3], json.loads(answer)

    who = {"email": "ada@example.org", "password": "engine"}
    assert call("POST", "/register", who) == ("200", {"id": 1})
    answer = call("POST", "/login", who)[1]
    assert call("GET", "/me", token=str(answer["token"])) == ("200", {"email": "ada@example.org"})
    assert call("GET", "/me", token="forged.token")[0] == "401", "a forged token is accepted"
    assert call("POST", "/login", {**who, "password": "guess"})[0] == "401", "a wrong password is accepted"
    assert call("GET", "/elsewhere")[0] == "404"


CHECKS = {
    "UserProtocol": user_protocol,
    "AuthInterface": auth_interface,
    "UserModel": user_model,
    "AuthService": auth_service,
    "App": app,
}
try:
    CHECKS[sys.argv[1]]()
except AssertionError as wrong:
    sys.exit(f"{sys.argv[1]}: {wrong}")
