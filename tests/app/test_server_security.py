"""Other pages, other users, other names of this machine, and files outside the start folder."""

import os
import socket
import stat

import pytest

from coterie.app.security import ENTER, Guard
from coterie.app.server import Server
from coterie.errors import ParameterError

from .app_client import Client

WRITES = [
    ("POST", "/api/open", {"demo": "moons"}),
    ("POST", "/api/upload?name=a.csv", b"a,b\n1,2\n"),
    ("POST", "/api/runs", {"algorithm": "kmeans", "k": 2}),
    ("DELETE", "/api/runs/r1", None),
    ("POST", "/api/undo", None),
]
READS = ["/", "/api/workspace", "/api/events", "/api/map", "/api/export/workspace"]


def test_the_token_becomes_a_cookie_that_scripts_cannot_read_and_other_sites_do_not_send(client):
    answer = client.ask("GET", f"/?token={client.token}", Cookie=None)
    assert (answer.status, answer.data.decode()) == (200, ENTER)
    cookie = answer.headers["set-cookie"]
    assert f"coterie_{client.port}={client.token}" in cookie
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()


@pytest.mark.parametrize("token", ["", "x", "é", "a" * 5000])
def test_a_wrong_token_gives_no_cookie(client, token):
    from urllib.parse import quote

    answer = client.ask("GET", f"/?token={quote(token)}", Cookie=None)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("cookie", [None, "coterie=1", "coterie_{port}=", "coterie_{port}=wrong"])
def test_nothing_can_be_read_without_the_cookie(client, path, cookie):
    answer = client.ask("GET", path, Cookie=cookie and cookie.format(port=client.port))
    assert answer.status == 401
    assert "error" in answer.json


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
@pytest.mark.parametrize("path", ["/", "/api/workspace"])
def test_a_name_that_was_rebound_to_this_machine_is_refused_even_with_the_cookie(client, host, path):
    assert client.ask("GET", path, Host=host.format(port=client.port)).status == 421


@pytest.mark.parametrize(
    "host, port, own, others",
    [
        ("127.0.0.1", 80, ["127.0.0.1", "127.0.0.1:80", "localhost"], ["[::1]", "127.0.0.1:81", "a@127.0.0.1"]),
        ("::1", 8000, ["[::1]:8000", "[0::0:1]:8000", "LOCALHOST:8000"], ["[::1]", "::1:8000", "[::2]:8000", "[::1"]),
        ("::1", 80, ["[::1]", "[::1]:80"], ["[::1]:8000", "evil.example"]),
        ("0.0.0.0", 80, ["192.168.1.7", "192.168.1.7:80", "[::1]"], ["192.168.1.7:81", "evil.example"]),
        ("::", 81, ["192.168.1.7:81", "[fe80::1]:81"], ["192.168.1.7", "evil.example:81"]),
    ],
)  # fmt: skip
def test_a_server_answers_under_the_address_that_browsers_write(host, port, own, others):
    guard = Guard(None, "t", host, port, lambda: None)
    assert [name for name in own if not guard._is_own_host(name)] == []
    assert [name for name in others if guard._is_own_host(name)] == []


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_a_server_on_an_ipv6_address_answers_under_the_address_that_it_prints(tmp_path):
    try:
        server = Server(host="::1", state=tmp_path)
    except ParameterError:
        pytest.skip("this machine has no address ::1")
    with server:
        assert server.url.startswith(f"http://[::1]:{server.port}/?token=")
        client, host = Client(server.port, server.token), f"[::1]:{server.port}"
        client.address = "::1"
        assert client.ask("GET", "/api/ping", Host=host).status == 204
        client.ask("GET", "/api/workspace", Host=host)
        assert client.ask("POST", "/api/open", {"demo": "moons"}, Host=host, Origin=f"http://{host}").status == 200


def test_the_browser_gets_the_token_by_a_private_file_and_not_in_its_arguments(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with Server(state=tmp_path / "state") as server:
        server.invitation.open()
        (uri,) = opened
        (path,) = tmp_path.glob("coterie-app-*.html")
        assert uri == path.as_uri()
        assert server.token not in uri
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert server.url in path.read_text()
        client = Client(server.port, server.token)
        assert client.ask("GET", "/?token=wrong", Cookie=None).status == 401
        assert path.exists()
        assert client.ask("GET", f"/?token={server.token}", Cookie=None).status == 200
        assert not path.exists()
        server.invitation.open()
    assert not list(tmp_path.glob("coterie-app-*.html"))


def test_localhost_is_a_name_of_the_server(client):
    assert client.ask("GET", "/api/ping", Host=f"localhost:{client.port}").status == 204


@pytest.mark.parametrize("method, path, body", WRITES)
@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1"]
)
def test_a_page_of_another_origin_can_change_nothing(client, method, path, body, origin):
    before = client.workspace()["revision"]
    answer = client.ask(method, path, body, Origin=origin and origin.format(port=client.port))
    assert answer.status == 403
    assert client.workspace()["revision"] == before


@pytest.mark.parametrize("method, path, body", WRITES)
def test_a_form_of_another_page_lacks_the_header(client, method, path, body):
    before = client.workspace()["revision"]
    assert client.ask(method, path, body, X_Coterie=None).status == 403
    assert client.workspace()["revision"] == before


def test_other_origins_get_no_permission_and_no_frame(client):
    answer = client.ask("OPTIONS", "/api/runs", Origin="http://evil.example", Access_Control_Request_Method="POST")
    assert answer.status == 403
    for path in ("/", "/api/workspace"):
        headers = client.get(path).headers
        assert not [name for name in headers if name.startswith("access-control")]
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_the_policy_of_the_page_is_that_of_the_report_and_its_own_server(client):
    page = client.get("/").data.decode()
    policy = page.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    policy = policy.replace("&#x27;", "'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.endswith("connect-src 'self'")
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "name",
    [
        "../secret.csv",
        "/etc/passwd",
        "..",
        ".",
        "",
        "a\x00.csv",
        "sub/../../secret.csv",
        "link.csv",
        "linked/secret.csv",
    ],
)
def test_no_name_leads_out_of_the_start_folder(client, folder, name):
    (folder.parent / "secret.csv").write_text("a,b\n1,2\n3,4\n")
    for link, target in (("link.csv", folder.parent / "secret.csv"), ("linked", folder.parent)):
        if not (folder / link).is_symlink():
            os.symlink(target, folder / link)
    answer = client.post("/api/open", {"path": name}, 400)
    assert answer.error["field"] == "file"


def test_a_link_inside_the_start_folder_is_a_table(client, folder):
    (folder / "inside.csv").write_text("a,b\n1,2\n3,4\n5,9\n")
    if not (folder / "inside_link.csv").is_symlink():
        os.symlink(folder / "inside.csv", folder / "inside_link.csv")
    assert client.post("/api/open", {"path": "inside_link.csv"}).json["table"]["rows"] == 3


@pytest.mark.parametrize("name", ["../../up.csv", "..\\..\\up.csv", "/tmp/up.csv", "C:\\up.csv", "a/../../../up.csv"])
def test_the_name_of_an_upload_is_only_a_name(client, server, folder, name):
    from urllib.parse import quote

    view = client.post(f"/api/upload?name={quote(name)}", b"a,b\n1,2\n3,4\n").json
    assert view["table"]["name"] == "up.csv"
    session = server.loader.session()
    assert session.table.path.is_relative_to(session.store.folder)
    assert not list(folder.parent.glob("up.csv"))


@pytest.mark.parametrize("name", ["", "a", "evil.py", "a.csv.exe", "..", "x/.csv/.."])
def test_only_tables_can_be_uploaded(client, name):
    from urllib.parse import quote

    assert client.post(f"/api/upload?name={quote(name)}", b"a\n1\n", 400).error["field"] == "file"


def test_uploads_are_private(client, server):
    client.post("/api/upload?name=private.csv", b"a,b\n1,2\n3,4\n")
    path = server.loader.session().table.path
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.fixture
def small_uploads(monkeypatch):
    from coterie.app import request_types

    monkeypatch.setattr(request_types, "MAX_UPLOAD", 1000)
    request_types.request_types.cache_clear()
    yield
    request_types.request_types.cache_clear()


@pytest.mark.usefixtures("small_uploads")
def test_an_upload_that_is_too_large_is_refused_and_nothing_of_it_stays(client, server):
    before = client.workspace()["revision"]
    for headers in ({}, {"Transfer_Encoding": "chunked"}):
        body = b"a,b\n" + b"1,2\n" * 1000
        data = body if not headers else f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        answer = client.ask("POST", "/api/upload?name=large.csv", data, **headers)
        assert answer.status == 413
        assert answer.error["field"] == "file"
    assert client.workspace()["revision"] == before
    assert not list(server.loader.session().store.folder.rglob("large.csv"))


def test_a_request_that_is_too_large_is_refused(client):
    assert client.ask("POST", "/api/open", b"x" * (5 << 20)).status == 413


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"\xff\xfe", b'"text"'])
@pytest.mark.parametrize("path", ["/api/open", "/api/columns", "/api/runs", "/api/paste"])
def test_a_request_that_is_no_object_is_an_error_with_a_sentence(client, path, body):
    answer = client.ask("POST", path, body)
    assert answer.status in (200, 201, 400, 409)
    if answer.status >= 400:
        assert answer.error["message"].endswith(".")


def test_an_unknown_address_and_a_wrong_method_are_errors_in_json(client):
    assert client.ask("GET", "/api/nothing").status == 404
    assert client.ask("POST", "/api/workspace", {}).status in (404, 405)
    assert client.ask("GET", "/static/../../etc/passwd").status == 404
