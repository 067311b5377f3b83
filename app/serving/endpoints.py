"""What each path answers: JSON in, JSON out.

/v1/embeddings and /v1/models have the shape of OpenAI's API, /embed and /rerank that of Hugging Face's
text-embeddings-inference, so that their clients work with another address.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.serving.service import PrecisionError, Service, UnknownModelError
from engine import EngineError, Role
from engine.layers.norm import of_unit_length

MOST_TEXTS = 2048  # of one request, as OpenAI has it

# What clients call the two roles.
ROLES: dict[str, Role] = {
    "query": "query", "search_query": "query",
    "document": "document", "passage": "document", "search_document": "document",
}  # fmt: skip


def _base64(vector: NDArray[np.float32]) -> str:
    """Little-endian float32 in base64."""
    return base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode("ascii")


ENCODINGS: dict[str, Callable[[NDArray[np.float32]], Any]] = {"float": lambda v: v.tolist(), "base64": _base64}


class Refusal(Exception):
    """A request that cannot be answered; the sentence is for whoever wrote the client, key: what it is about."""

    def __init__(self, status: int, sentence: str, key: str | None = None):
        super().__init__(sentence)
        self.status, self.sentence, self.key = status, sentence, key


def embeddings(service: Service, body: dict[str, Any]) -> Any:
    """POST /v1/embeddings."""
    texts = _texts(body, "input")
    encoding = _choice(body, "encoding_format", ENCODINGS, "float")
    name, role = _encoder(service, body), _role(body, "input_type")
    vectors = _embed(service, name, texts, role, _whole(body, "dimensions"))
    tokens = sum(service.token_counts(name, texts, role))
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": i, "embedding": ENCODINGS[encoding](vector)}
            for i, vector in enumerate(vectors)
        ],
        "model": name,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def models(service: Service) -> Any:
    """GET /v1/models."""
    names = [*service.served.encoders, *service.served.rerankers]
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "inkling"} for name in names],
    }


def embed(service: Service, body: dict[str, Any]) -> Any:
    """POST /embed."""
    texts = _texts(body, "inputs")
    name, role = _encoder(service, body), _role(body, "prompt_name")
    if not _flag(body, "truncate", True):
        longest, most = service.longest(name, texts, role)
        if longest > most:
            raise Refusal(413, f"A text has {longest} tokens; {name} reads {most}.", "inputs")
    service.token_counts(name, texts, role)
    vectors = _embed(service, name, texts, role, _whole(body, "dimensions"))
    if _flag(body, "normalize", True):
        vectors = of_unit_length(vectors)
    elif np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3):
        raise Refusal(422, f"The vectors of {name} come out of unit length; there are no others.", "normalize")
    return vectors.tolist()


def rerank(service: Service, body: dict[str, Any]) -> Any:
    """POST /rerank."""
    query, texts = _present(body, "query"), _texts(body, "texts")
    if not isinstance(query, str):
        raise Refusal(400, "The key 'query' is not a text.", "query")
    with_text, raw = _flag(body, "return_text", False), _flag(body, "raw_scores", False)
    name = _known(service.reranker_name, body)
    logits = service.rerank(name, query, texts).astype(np.float64)
    scores = logits if raw else 1 / (1 + np.exp(-logits))
    order = np.argsort(-scores, kind="stable").tolist()
    return [{"index": i, "score": float(scores[i]), **({"text": texts[i]} if with_text else {})} for i in order]


POSTS: dict[str, Callable[[Service, dict[str, Any]], Any]] = {
    "/v1/embeddings": embeddings,
    "/embed": embed,
    "/rerank": rerank,
}
GETS: dict[str, Callable[[Service], Any]] = {
    "/health": lambda _: {"status": "ok"},
    "/v1/models": models,
    "/metrics": lambda service: service.metrics.text(len(service.models.loaded())),
}


def described(path: str, refusal: Refusal) -> Any:
    """The body of a refusal, in the shape that a path's clients expect."""
    if path.startswith("/v1/"):
        kind = "invalid_request_error" if refusal.status < 500 else "server_error"
        return {"error": {"message": refusal.sentence, "type": kind, "param": refusal.key, "code": refusal.status}}
    return {"error": refusal.sentence, "error_type": "Validation" if refusal.status < 500 else "Backend"}


def _embed(service: Service, name: str, texts: list[str], role: Role | None, dim: int | None) -> Any:
    try:
        return service.embed(name, texts, role=role, dim=dim)
    except EngineError as error:
        # With a width asked for, it is mostly one that the model does not have.
        raise Refusal(400 if dim is not None else 500, str(error), None if dim is None else "dimensions") from error


def _encoder(service: Service, body: dict[str, Any]) -> str:
    return _known(service.encoder_name, body)


def _known(find: Callable[[str | None], str], body: dict[str, Any]) -> str:
    asked = body.get("model")
    if asked is not None and not isinstance(asked, str):
        raise Refusal(400, "The key 'model' is not a text.", "model")
    try:
        return find(asked)
    except UnknownModelError as error:
        raise Refusal(404, str(error), "model") from error
    except PrecisionError as error:
        raise Refusal(400, str(error), "model") from error


def _present(body: dict[str, Any], key: str) -> Any:
    if key not in body:
        raise Refusal(400, f"The key {key!r} is missing.", key)
    return body[key]


def _texts(body: dict[str, Any], key: str) -> list[str]:
    given = _present(body, key)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Refusal(400, f"The key {key!r} is neither a text nor a list of texts; token ids are not taken.", key)
    if not 1 <= len(texts) <= MOST_TEXTS:
        sentence = f"The key {key!r} holds {len(texts)} texts; 1 to {MOST_TEXTS} can be."
        raise Refusal(413 if texts else 400, sentence, key)
    return texts


def _role(body: dict[str, Any], key: str) -> Role | None:
    asked = body.get(key)
    if asked is None:
        return None
    if not isinstance(asked, str) or asked not in ROLES:
        raise Refusal(400, f"The key {key!r} is {asked!r}, not one of {', '.join(ROLES)}.", key)
    return ROLES[asked]


def _whole(body: dict[str, Any], key: str) -> int | None:
    value = body.get(key)
    if value is not None and type(value) is not int:
        raise Refusal(400, f"The key {key!r} is {value!r}, not a whole number.", key)
    return value


def _flag(body: dict[str, Any], key: str, default: bool) -> bool:
    value = body.get(key)
    if value is not None and not isinstance(value, bool):
        raise Refusal(400, f"The key {key!r} is {value!r}, neither true nor false.", key)
    return default if value is None else value


def _choice(body: dict[str, Any], key: str, choices: Iterable[str], default: str) -> str:
    value = body.get(key)
    if value is not None and value not in choices:
        raise Refusal(400, f"The key {key!r} is {value!r}, not one of {', '.join(choices)}.", key)
    return default if value is None else str(value)
