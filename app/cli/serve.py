"""Offer the embedding engine to other programs on this machine, over HTTP.

POST /v1/embeddings speaks as OpenAI's API does, POST /embed and POST /rerank as text-embeddings-inference; GET
/v1/models, /health and /metrics say what is there. It listens on 127.0.0.1 only unless --host says otherwise, connects
to nobody, and ends with Ctrl-C. Models load when they are first asked for.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
from types import FrameType

from app import program
from app.cli.arguments import given_text, workers
from app.terminal import json_text, printable
from engine import EngineError, Models
from engine.options import PRECISIONS
from engine.registry import IDLE_SECONDS

HOST, PORT = "127.0.0.1", 8765
POLL_SECONDS = 60.0  # nothing is looked for: requests and signals come by themselves


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which models, and where to listen."""
    parser.description, parser.formatter_class = __doc__, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--model",
        type=given_text,
        action="append",
        default=[],
        metavar="M",
        dest="models",
        help="catalog name or folder of an embedding model or a reranker; may be given again. The first of each kind "
        "is taken unasked; all other models on this machine can be asked for by name",
    )
    parser.add_argument("--host", type=given_text, default=HOST, metavar="H", help=f"address to listen on ({HOST})")
    parser.add_argument("--port", type=_port, default=PORT, metavar="N", help=f"0 for any that is free ({PORT})")
    parser.add_argument("--precision", choices=PRECISIONS, default="auto")
    parser.add_argument("--workers", type=workers, metavar="N", help="threads at most")
    idle_help = f"let go of a model that nobody has asked for in S seconds ({IDLE_SECONDS:g}); 0 keeps all"
    parser.add_argument("--idle", type=_seconds, default=IDLE_SECONDS, metavar="S", help=idle_help)


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM; the exit code."""
    if program.is_packaged():
        raise EngineError(
            "The packaged program opens no socket of any kind, so it has no server: install Inkling with pip for that."
        )
    # Not before: the packaged program has nothing of what these import.
    from app.serving.listener import Listener, is_loopback
    from app.serving.service import Served, Service

    served = Served.find(args.models, args.folders.models)
    with Models(
        precision=args.precision,
        workers=args.workers,
        idle_seconds=args.idle or None,
        models_dir=args.folders.models,
        disk_weights=args.folders.disk_weights,
    ) as models:
        service = Service(models, served)
        service.check_precision()
        listener = Listener(service, args.host, args.port)
        if not is_loopback(args.host):
            print(
                f"inkling: everyone whose packets reach {printable(args.host)} can use this server: it asks for no "
                "password and encrypts nothing.",
                file=sys.stderr,
            )
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            names = [*served.encoders, *served.rerankers]
            line = f"Listening on {listener.url} with {', '.join(names)}; Ctrl-C ends it."
            print(json_text({"url": listener.url, "models": names}) if args.json else printable(line), flush=True)
            listener.serve_forever(poll_interval=POLL_SECONDS)
        except KeyboardInterrupt:
            return 0  # the way in which a server is meant to end
        finally:
            signal.signal(signal.SIGTERM, before)
            listener.end()
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 1000000")
    return value
