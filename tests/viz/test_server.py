"""The server: for this machine and those who know the token; everything else is refused."""

import http.client
import socket
import threading

import pytest

from retrograd.viz.server import HOST, REMEMBERED, PageServer, Stream


@pytest.fixture
def asked():
    return []


@pytest.fixture
def server(asked):
    def control(text):
        asked.append(text)
        return text == "stop"

    made = PageServer(lambda: "<p>page</p>", control=control)
    yield made
    made.close()


def request(server, path, method="GET", headers=(), body=None):
    line = http.client.HTTPConnection(HOST, server.port, timeout=5)
    try:
        line.request(method, path, body=body, headers=dict(headers))
        answer = line.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        line.close()


def token(server):
    return f"token={server.token}"


def test_the_page_with_the_token(server):
    status, body, headers = request(server, f"/?{token(server)}")
    assert (status, body) == (200, "<p>page</p>")
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY"
    assert server.url == f"http://127.0.0.1:{server.port}/?{token(server)}"


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?other=1", "?token=%ff%00ü"])
@pytest.mark.parametrize("path", ["/", "/events", "/control", "/../../etc/passwd"])
def test_403_without_the_token(server, asked, path, query):
    query = query.encode("ascii", "replace").decode()
    assert request(server, path + query)[0] == 403
    assert request(server, path + query, "POST", body="stop")[0] == 403
    assert asked == []


def test_a_part_of_the_token_is_not_the_token(server):
    assert request(server, f"/?{token(server)[:-1]}")[0] == 403
    assert request(server, f"/?{token(server)}x")[0] == 403


@pytest.mark.parametrize(
    "path",
    ["/..", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/static/explorer.js",
     "/..%2f..%2fetc%2fpasswd", "/index.html", "/page.py"],
)  # fmt: skip
def test_404_for_every_other_path(server, path):
    assert request(server, f"{path}?{token(server)}")[0] == 404
    assert request(server, f"{path}?{token(server)}", "POST", body="stop")[0] == 404


def test_another_host_name_is_refused(server):
    for host in ("evil.example", f"evil.example:{server.port}", "", f"{HOST}:1"):
        assert request(server, f"/?{token(server)}", headers={"Host": host})[0] == 403


def test_another_origin_controls_nothing(server, asked):
    path = f"/control?{token(server)}"
    evil = {"Origin": "http://evil.example"}
    assert request(server, path, "POST", evil, "stop")[0] == 403
    assert request(server, path, "POST", {"Origin": server.url.split("/?")[0]}, "stop")[0] == 204
    assert request(server, path, "POST", body="nonsense")[0] == 400
    assert request(server, path, "POST", body="x" * 5000)[0] == 413
    assert asked == ["stop", "nonsense"]


def test_listens_on_the_loopback_only(server):
    assert server._server.socket.getsockname()[0] == "127.0.0.1"
    others = {str(a[4][0]) for a in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        with pytest.raises(OSError, match=r"refused|timed out|unreachable"):
            socket.create_connection((address, server.port), timeout=0.5)


def test_a_taken_port_is_no_problem(server):
    other = PageServer(lambda: "other", server.port)
    try:
        assert other.port != server.port
        assert request(other, f"/?{token(other)}")[1] == "other"
        assert request(other, f"/?{token(server)}")[0] == 403
    finally:
        other.close()


def test_events_arrive_and_can_be_resumed(server):
    server.stream.publish("log", "1")
    found = []

    def listen():
        line = http.client.HTTPConnection(HOST, server.port, timeout=5)
        line.request("GET", f"/events?{token(server)}&from=0")
        answer = line.getresponse()
        while text := answer.readline().decode():
            found.append(text.strip())
            if text.startswith("event: bye"):
                break
        line.close()

    thread = threading.Thread(target=listen)
    thread.start()
    server.stream.publish("log", "2")
    server.stream.close()
    thread.join(5)
    assert [t for t in found if t] == [
        "id: 1", "event: log", "data: 1", "id: 2", "event: log", "data: 2", "event: bye",
    ]  # fmt: skip
    status, body, _ = request(server, f"/events?{token(server)}", headers={"Last-Event-ID": "1"})
    assert (status, "data: 1" in body, "data: 2" in body) == (200, False, True)


def test_garbage_does_not_end_it(server):
    with socket.create_connection((HOST, server.port), timeout=5) as line:
        line.sendall(b"\x00\xff nonsense\r\n\r\n")
        line.recv(1000)
    assert request(server, f"/?{token(server)}")[0] == 200


def test_a_long_stream_is_forgotten_from_its_beginning():
    stream = Stream()
    for i in range(3 * REMEMBERED):
        stream.publish("log", str(i))
    assert len(stream) == 3 * REMEMBERED
    first, events = stream.take(0, 0)
    assert 0 < first < len(stream)
    assert events[-1] == ("log", str(3 * REMEMBERED - 1))
    assert events[0] == ("log", str(first))
    assert stream.take(len(stream), 0) == (len(stream), [])
