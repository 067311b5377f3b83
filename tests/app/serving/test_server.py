"""The server over a real loopback socket: its answers, its refusals, and who may ask."""

import base64
import http.client
import json
import logging
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from app.serving import listener as listening
from app.serving.endpoints import POSTS, Refusal
from app.serving.listener import Listener, is_loopback
from app.serving.service import Served, Service
from engine import CrossEncoder, Encoder, EngineError, Models
from engine.catalog import DEFAULT_MODEL, model_path
from tests.goldens.reading import HERE
from tests.goldens.texts import ordinary

TINY, RERANKER = HERE / "tiny_bert", HERE / "reranker_bert"


@contextmanager
def another(models: Path) -> Iterator[Listener]:
    """A server of its own, serving until the end of the block."""
    with Models(workers=1, idle_seconds=None, models_dir=models) as loaded:
        found = Listener(Service(loaded, Served.find([str(TINY), str(RERANKER)], models)), "127.0.0.1", 0)
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()
            found.end()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of imported models: one that may be cut, and one that is broken."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "Qwen3-Embedding-0.6B").symlink_to(TINY)
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text("{}")
    return folder


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[Listener]:
    with another(models) as found:
        yield found


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.load(TINY, workers=1)


def ask(
    server: Listener, path: str, body: Any = None, *, method: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Status and content; a body that is no bytes is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json"} if data is not None else {}
    connection.request(method or ("GET" if data is None else "POST"), path, data, {**given, **(headers or {})})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    kind = answer.headers.get_content_type()
    return answer.status, json.loads(content) if kind == "application/json" else content.decode()


def test_embeddings_have_openais_shape(server: Listener, encoder: Encoder) -> None:
    texts = ["one", "größer", ""]
    status, answer = ask(server, "/v1/embeddings", {"input": texts, "model": "tiny_bert", "user": "somebody"})
    assert status == 200 and (answer["object"], answer["model"]) == ("list", "tiny_bert")
    assert [(row["object"], row["index"]) for row in answer["data"]] == [("embedding", i) for i in range(3)]
    found = np.array([row["embedding"] for row in answer["data"]], np.float32)
    np.testing.assert_array_equal(found, encoder.encode(texts))
    tokens = sum(map(len, encoder.token_ids(texts)))
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}


def test_base64_a_role_and_a_width_are_heard(server: Listener, encoder: Encoder) -> None:
    body = {"input": "tea", "encoding_format": "base64", "input_type": "query"}
    status, answer = ask(server, "/v1/embeddings", body)
    data = base64.b64decode(answer["data"][0]["embedding"])
    np.testing.assert_array_equal(np.frombuffer(data, "<f4"), encoder.encode(["tea"], role="query")[0])
    for name in ("Qwen3-Embedding-0.6B", "Qwen/qwen3-embedding-0.6b"):
        status, answer = ask(server, "/v1/embeddings", {"input": "tea", "model": name, "dimensions": 32})
        assert status == 200 and answer["model"] == "Qwen3-Embedding-0.6B"
        assert len(answer["data"][0]["embedding"]) == 32


def test_embed_has_the_shape_of_text_embeddings_inference(server: Listener, encoder: Encoder) -> None:
    status, answer = ask(server, "/embed", {"inputs": ["one", "two"], "prompt_name": "passage"})
    assert status == 200
    np.testing.assert_allclose(np.array(answer), encoder.encode(["one", "two"], role="document"), atol=1e-6)
    assert ask(server, "/embed", {"inputs": "one"})[1] == ask(server, "/embed", {"inputs": ["one"]})[1]
    assert ask(server, "/embed", {"inputs": "x " * 100})[0] == 200
    status, answer = ask(server, "/embed", {"inputs": "x " * 100, "truncate": False})
    assert status == 413 and answer["error"] == "A text has 102 tokens; tiny_bert reads 48."
    assert answer["error_type"] == "Validation"
    assert ask(server, "/embed", {"inputs": "x", "normalize": False})[0] == 422


@pytest.mark.parametrize("role", [None, "query"])
def test_untruncated_a_text_may_fill_the_model_exactly(
    server: Listener, models: Path, encoder: Encoder, role: Literal["query"] | None
) -> None:
    name = "tiny_bert" if role is None else "Qwen3-Embedding-0.6B"  # which has a prefix for queries
    reader = encoder if role is None else Encoder.load(models / name, workers=1)
    words = 48 - len(reader.token_ids([""], role=role)[0])
    assert words < 46 or role is None
    for extra, wanted in ((0, 200), (1, 413)):
        text = " ".join(["x"] * (words + extra))
        body = {"inputs": ["x", text], "model": name, "prompt_name": role, "truncate": False}
        assert ask(server, "/embed", body)[0] == wanted


def test_rerank_puts_the_best_first(server: Listener) -> None:
    texts = ordinary(12)
    with CrossEncoder.load(RERANKER, workers=1) as reranker:
        logits = reranker.score("when does the lease end", texts, raw=True).astype(np.float64)
    status, answer = ask(server, "/rerank", {"query": "when does the lease end", "texts": texts, "return_text": True})
    assert status == 200 and [row["index"] for row in answer] == np.argsort(-logits).tolist()
    for row in answer:
        assert row["text"] == texts[row["index"]]
        assert row["score"] == pytest.approx(1 / (1 + np.exp(-logits[row["index"]])))
    status, answer = ask(server, "/rerank", {"query": "when does the lease end", "texts": texts, "raw_scores": True})
    assert [row["score"] for row in answer] == pytest.approx(sorted(logits, reverse=True)) and "text" not in answer[0]


def test_what_is_there_is_told(server: Listener) -> None:
    assert ask(server, "/health") == (200, {"status": "ok"})
    status, answer = ask(server, "/v1/models")
    names = [row["id"] for row in answer["data"]]
    assert status == 200 and names[0] == "tiny_bert" and "reranker_bert" in names and "broken" not in names
    ask(server, "/embed", {"inputs": "one"})
    ask(server, "/nowhere/" + "x" * 50)
    status, text = ask(server, "/metrics")
    assert status == 200 and 'inkling_requests_total{path="/embed",status="200"}' in text
    assert 'path="other",status="404"' in text and "nowhere" not in text


def test_requests_at_the_same_time_get_the_bits_that_one_gets(server: Listener, encoder: Encoder) -> None:
    texts = ordinary(60)
    wanted = encoder.encode(texts)

    def work(start: int) -> bool:
        some = slice(start, start + 1 + start % 5)
        status, answer = ask(server, "/v1/embeddings", {"input": texts[some]})
        found = np.array([row["embedding"] for row in answer["data"]], np.float32)
        return status == 200 and np.array_equal(found, wanted[some])

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(work, [i % 50 for i in range(150)]))


BAD: list[tuple[str, Any, int, str]] = [
    ("/v1/embeddings", {}, 400, "The key 'input' is missing."),
    ("/v1/embeddings", {"input": None}, 400, "'input' is neither a text nor a list"),
    ("/embed", {"input": "x"}, 400, "The key 'inputs' is missing."),
    ("/embed", {"inputs": 3}, 400, "'inputs' is neither a text nor a list"),
    ("/v1/embeddings", {"input": []}, 400, "holds 0 texts"),
    ("/v1/embeddings", {"input": [[1, 2]]}, 400, "token ids are not taken"),
    ("/v1/embeddings", {"input": ["x"] * 2049}, 413, "1 to 2048"),
    ("/v1/embeddings", {"input": "x", "model": "gpt"}, 404, "'gpt' is not served here; there are tiny_bert"),
    ("/v1/embeddings", {"input": "x", "model": str(TINY.parent)}, 404, "is not served here"),
    ("/v1/embeddings", {"input": "x", "model": 3}, 400, "'model' is not a text"),
    ("/v1/embeddings", {"input": "x", "dimensions": 20}, 400, "nor to any other width"),
    ("/v1/embeddings", {"input": "x", "dimensions": -1}, 400, "cannot be cut to -1"),
    ("/v1/embeddings", {"input": "x", "dimensions": "3"}, 400, "not a whole number"),
    ("/v1/embeddings", {"input": "x", "encoding_format": "hex"}, 400, "not one of float, base64"),
    ("/v1/embeddings", {"input": "x", "input_type": "poem"}, 400, "'poem', not one of query"),
    ("/v1/embeddings", b"{", 400, "not JSON"),
    ("/v1/embeddings", b"[" * 200_000, 400, "not JSON"),
    ("/v1/embeddings", b"\xff", 400, "not JSON"),
    ("/v1/embeddings", [1], 400, "not a JSON object"),
    ("/embed", {"inputs": "x", "truncate": "no"}, 400, "neither true nor false"),
    ("/rerank", {"texts": ["x"]}, 400, "The key 'query' is missing."),
    ("/rerank", {"query": ["x"], "texts": ["x"]}, 400, "'query' is not a text"),
    ("/rerank", {"query": "x"}, 400, "The key 'texts' is missing."),
    ("/rerank", {"query": "x", "texts": ["x"], "model": "tiny_bert"}, 404, "The reranker 'tiny_bert' is not served"),
    ("/health", {}, 405, "/health does not take POST"),
    ("/nowhere", {}, 404, "Here are /v1/embeddings"),
]


@pytest.mark.parametrize(("path", "body", "status", "sentence"), BAD)
def test_a_bad_request_is_a_sentence(server: Listener, path: str, body: Any, status: int, sentence: str) -> None:
    found, answer = ask(server, path, body)
    said = answer["error"]["message"] if path.startswith("/v1/") else answer["error"]
    assert found == status and sentence in said
    assert ask(server, "/health")[0] == 200


def test_get_is_no_way_to_send_texts(server: Listener) -> None:
    assert ask(server, "/embed")[0] == 405
    assert ask(server, "/embed", method="OPTIONS", headers={"Origin": "http://evil.example"})[0] == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get"])
def test_other_methods_are_refused_in_json_and_counted(server: Listener, method: str) -> None:
    def counted() -> int:
        found = re.search(r'requests_total{path="/embed",status="405"} (\d+)', ask(server, "/metrics")[1])
        return int(found[1]) if found else 0

    before = counted()
    status, answer = ask(server, "/embed", method=method)
    assert (status, answer["error"]) == (405, f"/embed does not take {method}.")
    assert counted() == before + 1
    assert ask(server, "/nowhere", method=method)[0] == 404


@pytest.mark.parametrize(
    ("request_", "status", "sentence"),
    [
        (b"nonsense\r\n\r\n", b"400 ", "Bad request syntax ('nonsense')"),
        (b"GET / HTTP/x.y\r\n\r\n", b"400 ", "Bad request version ('HTTP/x.y')"),
        (b"GET / HTTP/3.0\r\n\r\n", b"505 ", "Invalid HTTP version (3.0)"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414 ", "Too Long"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", b"431 ", "Line too long"),
    ],
)
def test_what_is_no_request_is_refused_in_json(server: Listener, request_: bytes, status: bytes, sentence: str) -> None:
    head, _, body = raw(server, request_).partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/"):
        assert head.startswith(b"HTTP/1.1 " + status) and b"Content-Type: application/json" in head
    else:  # to a client of HTTP 0.9, which knows no head
        body = head
    answer = json.loads(body)
    assert sentence in answer["error"] and answer["error_type"] in ("Validation", "Backend")
    assert ask(server, "/health")[0] == 200


def test_what_a_path_takes_is_told_with_a_405(server: Listener) -> None:
    assert b"\r\nAllow: GET, HEAD\r\n" in raw(server, b"PUT /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"\r\nAllow: POST\r\n" in raw(server, b"GET /embed HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_head_is_get_without_the_body(server: Listener) -> None:
    answer = raw(server, b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
    assert answer.count(b"HTTP/1.1 200") == 2 and answer.count(b"Content-Length: 15") == 2 and b"{" not in answer
    refused = raw(server, b"HEAD /embed HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b" 405 " in refused and refused.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": "192.168.1.5"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": "localhost"}, 200),
        ({"Host": "127.0.0.1"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_only_those_at_home_may_ask(server: Listener, headers: dict[str, str], status: int) -> None:
    assert ask(server, "/embed", {"inputs": "x"}, headers=headers)[0] == status


def test_no_answer_invites_pages_of_other_sites(server: Listener) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", "/health")
    answer = connection.getresponse()
    assert not [name for name in answer.headers if name.casefold().startswith("access-control")]
    assert answer.headers["Server"].strip() == "inkling" and answer.headers["X-Content-Type-Options"] == "nosniff"
    connection.close()


def raw(server: Listener, request: bytes) -> bytes:
    """What comes back on a connection until it is closed."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


HEAD = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_bodies_are_bounded_and_counted(server: Listener) -> None:
    assert b" 411 " in raw(server, HEAD + b"\r\n{}")
    assert b" 411 " in raw(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert b" 411 " in raw(server, HEAD + b"Content-Length: -5\r\n\r\n")
    assert b" 413 " in raw(server, HEAD + b"Content-Length: 999999999999\r\n\r\n")
    assert raw(server, HEAD + b"Content-Length: 50\r\n\r\n{") == b""
    assert ask(server, "/health")[0] == 200


def test_a_connection_serves_several_requests(server: Listener) -> None:
    body = b'{"inputs":"x"}'
    one = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    assert raw(server, one + one).count(b"HTTP/1.1 200") == 2
    refused = HEAD.replace(b"localhost", b"evil.example") + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    assert raw(server, refused + one).count(b"HTTP/1.1") == 1, "a body that was not read is no second request"


def test_too_many_connections_are_closed(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 1)
    with another(models) as server, socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as held:
        held.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert held.recv(15) == b"HTTP/1.1 200 OK"
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as other:
            assert other.recv(1) == b""


def test_a_fault_of_ours_is_logged_and_answered(
    server: Listener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: Any, **options: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(server.service, "embed", broken)
    with caplog.at_level(logging.ERROR):
        status, answer = ask(server, "/embed", {"inputs": "secret words"})
    assert status == 500 and "the log says what" in answer["error"]
    assert "ZeroDivisionError" in caplog.text and "secret words" not in caplog.text


def test_trouble_of_the_engine_is_its_sentence(server: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **options: Any) -> None:
        raise EngineError("the model is on fire")

    monkeypatch.setattr(server.service, "rerank", broken)
    status, answer = ask(server, "/rerank", {"query": "x", "texts": ["x"]})
    assert (status, answer["error"]) == (500, "the model is on fire")


def test_models_without_vectors_of_texts_are_not_served(models: Path) -> None:
    with pytest.raises(EngineError, match="not served"):
        Served.find([str(HERE / "late_pylate")], models)
    with Models(workers=1) as loaded:
        service = Service(loaded, Served({}, {}))
        with pytest.raises(EngineError, match="No reranker is served here"):
            service.reranker_name(None)


def test_a_port_that_is_taken_is_a_sentence(server: Listener) -> None:
    with pytest.raises(EngineError, match=f"listen on 127.0.0.1:{server.server_port} .*another --port"):
        Listener(server.service, "127.0.0.1", server.server_port)


@pytest.mark.parametrize("host", ["::1", "a..b", "192.0.2.1"])
def test_a_host_that_is_none_of_this_machine_is_a_sentence(server: Listener, host: str) -> None:
    with pytest.raises(EngineError, match=r"Nothing can listen on .*choose another --host\."):
        Listener(server.service, host, 0)


def test_a_model_that_cannot_be_had_in_the_precision_is_refused_without_a_path(tmp_path: Path) -> None:
    (tmp_path / "packed").symlink_to(model_path(DEFAULT_MODEL))
    with Models(precision="fp32", workers=1) as loaded:
        service = Service(loaded, Served({"tiny_bert": TINY, "packed": tmp_path / "packed"}, {}))
        service.check_precision()
        with pytest.raises(Refusal, match="packed cannot be had in fp32 on this machine, only in int8") as caught:
            POSTS["/embed"](service, {"inputs": "x", "model": "packed"})
        assert caught.value.status == 400 and "/" not in caught.value.sentence
        assert len(POSTS["/embed"](service, {"inputs": "x"})) == 1


def test_a_named_model_must_be_had_in_the_precision(tmp_path: Path) -> None:
    packed = model_path(DEFAULT_MODEL)
    with Models(precision="fp32", workers=1) as loaded:
        with pytest.raises(EngineError, match="cannot be had in fp32"):
            Service(loaded, Served.find([str(TINY), str(packed)], tmp_path)).check_precision()
        Service(loaded, Served.find([str(TINY)], tmp_path)).check_precision()


@pytest.mark.parametrize(("host", "wanted"), [
    ("127.0.0.1", True), ("127.8.9.1", True), ("localhost", True), ("LocalHost", True), ("::1", True),
    ("0.0.0.0", False), ("192.168.0.1", False), ("localhost.example", False), ("", False),
])  # fmt: skip
def test_loopback_is_told_from_the_rest(host: str, wanted: bool) -> None:
    assert is_loopback(host) is wanted


def test_on_other_addresses_numbers_may_stand_for_the_server_and_foreign_names_not(server: Listener) -> None:
    class Open(Listener):
        def __init__(self) -> None:
            self.host, self.server_port = "0.0.0.0", 80

    found = Open()
    assert found.is_ours("192.168.0.7:80") and found.is_ours("localhost") and not found.is_ours("evil.example")


def test_the_end_waits_for_those_who_have_asked(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, may_answer = threading.Event(), threading.Event()

    def slow(service: Any, body: Any) -> Any:
        entered.set()
        assert may_answer.wait(60)
        return ["done"]

    monkeypatch.setitem(listening.POSTS, "/embed", slow)
    with Models(workers=1) as loaded, ThreadPoolExecutor(2) as pool:
        found = Listener(Service(loaded, Served.find([str(TINY)], models)), "127.0.0.1", 0)
        serving = pool.submit(found.serve_forever, 0.01)
        answer = pool.submit(ask, found, "/embed", {"inputs": "x"})
        assert entered.wait(60)
        found.shutdown()
        serving.result()
        threading.Timer(0.05, may_answer.set).start()
        found.end()
        assert found._busy == 0 and answer.result() == (200, ["done"])
