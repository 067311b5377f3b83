"""A model folder as published: which family, how tokens become a vector, how long an input may be, which prefixes.

Whatever would change the vectors and is not computed here is refused, naming the file and the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.arguments import whole_number
from engine.backbone import TRANSFORMER_CONFIGS, Backbone, ReadFolder
from engine.catalog import Catalog, CatalogModel, is_model_folder, no_model
from engine.errors import EngineError, ModelError
from engine.late import LateInteraction, read_late, read_stanford
from engine.layers.linear import linear
from engine.layers.norm import unit_length
from engine.layers.pooling import POOLING_MODES, pool
from engine.models.parameters import Parameter
from engine.modules import (
    MASK,
    STATIC,
    Dense,
    Entry,
    Normalize,
    Pooling,
    check_sequence,
    is_late,
    read_head,
    read_listing,
    read_pooling,
    static_listing,
)
from engine.plan import Graph, Plan, Value
from engine.prompts import Role, read_prompts
from engine.published import read_optional_json
from engine.tokenizer import Tokenizer
from engine.weights.packed import is_packed
from engine.weights.safetensors import Weights

TOKENS = "token_embeddings"  # what the modules of late interaction work on
STANFORD = "HF_ColBERT"


@dataclass(frozen=True)
class ModelFolder(ReadFolder):
    """One model folder, read and checked.

    pooling: a member of POOLING_MODES. include_prompt: whether the prefix's tokens are pooled too.
    head: what happens to the pooled row, in order. prompts: "query" and "document" prefixes, maybe "";
    default_prompt: the prefix of a text without a role. matryoshka: widths to which vectors may be cut.
    late: how a model of late interaction reads queries and documents; its head works on every token.
    """

    pooling: str
    include_prompt: bool
    head: tuple[Dense | Normalize, ...]
    prompts: dict[Role, str]
    default_prompt: str = ""
    matryoshka: tuple[int, ...] = ()
    late: LateInteraction | None = None

    @classmethod
    def open(cls, path: Path) -> ModelFolder:
        """Read and check a folder; ModelError names the file and the key of whatever cannot be computed."""
        if not is_model_folder(path):
            raise ModelError(no_model(path))
        name = folder_name(path)
        known = Catalog.load().find(name)
        entries = read_listing(path)
        if entries is None:
            entries = static_listing(path)
        late: LateInteraction | None = None
        head: tuple[Dense | Normalize, ...]
        if entries is None and is_stanford(path):
            late = read_stanford(path)
            backbone = Backbone.open(path)
            pooling, head = Pooling("mean"), (_inline_projection(path, backbone), Normalize())
        elif entries is None:
            backbone = Backbone.open(path)
            pooling, head = _from_catalog(path, known)
        elif is_late(entries):
            backbone = Backbone.open(path / entries[0].path)
            late = _read_late(path, entries)
            modules = [entry for entry in entries[1:] if entry.kind != MASK]
            pooling, head = Pooling("mean"), read_head(path, modules, backbone.config["hidden_size"], of=TOKENS)
            head = head if isinstance(head[-1], Normalize) else (*head, Normalize())
        else:
            check_sequence(path, entries)
            first = path / entries[0].path
            is_static = entries[0].kind == STATIC
            backbone = Backbone.open_static(first) if is_static else Backbone.open(first)
            hidden = backbone.config["hidden_size"]
            pooling = Pooling("mean") if is_static else read_pooling(path, entries[1], hidden)
            head = read_head(path, entries[1 if is_static else 2 :], hidden, of="sentence_embedding")
        prompts, default = read_prompts(path, known)
        if late is not None:
            late, backbone = late.within(backbone.max_tokens), backbone.for_lengths(late.lengths.values())
        return cls(
            path=path,
            name=known.name if known else name,
            backbone=backbone,
            pooling=pooling.mode,
            include_prompt=pooling.include_prompt,
            head=head,
            prompts=prompts,
            default_prompt=default,
            matryoshka=known.matryoshka if known else (),
            late=late,
        )

    def with_max_tokens(self, max_tokens: int) -> ModelFolder:
        """The same for inputs cut at `max_tokens`; EngineError where the model does not take so many, or so few."""
        own = self.max_tokens if self.late is None else self.late.lengths["document"] or self.max_tokens
        max_tokens = whole_number("max_tokens", max_tokens)
        if not 1 <= max_tokens <= own:
            raise EngineError(f"{self.name} takes texts of up to {own} tokens; {max_tokens} is not possible.")
        return replace(self, backbone=replace(self.backbone, max_tokens=max_tokens)) if max_tokens < own else self

    @property
    def dim(self) -> int:
        """Width of a vector."""
        return next((module.outputs for module in reversed(self.head) if isinstance(module, Dense)), self.hidden)

    @property
    def normalize(self) -> bool:
        """Whether vectors come out of unit length."""
        return bool(self.head) and isinstance(self.head[-1], Normalize)

    def parameters(self) -> list[Parameter]:
        """Every parameter of the whole model: the family's, then those of the modules behind it."""
        found = self.backbone.family.parameters(self.config)
        for i, module in enumerate(self.head):
            if isinstance(module, Dense):
                found += module.parameters(f"head.{i}")
        return found

    def tokenizer(self) -> Tokenizer:
        """The folder's tokenizer, checked to fit the word table."""
        return self.backbone.tokenizer()

    def weights(self) -> Weights:
        """Map the weights: the Transformer module's, and beside them those of every Dense module."""
        found = Weights.open(self.transformer)
        if is_packed(found):
            return found
        return found.beside({m.path: self.path / m.path for m in self.head if isinstance(m, Dense) and m.path})

    def plan(self) -> Plan:
        """The whole computation: the family's forward pass on symbolic values, pooling, and what follows."""
        graph = Graph({parameter.name: parameter.shape for parameter in self.parameters()})
        tokens = self.backbone.family.forward(graph, self.config)
        if self.late is not None:
            tokens = self._apply_head(graph, tokens)
            return Plan.of(graph, tokens, pool(graph, tokens, self.pooling))
        x = pool(graph, tokens, self.pooling, skip_prompt=not self.include_prompt)
        return Plan.of(graph, tokens, self._apply_head(graph, x))

    def _apply_head(self, graph: Graph, x: Value) -> Value:
        for i, module in enumerate(self.head):
            x = linear(graph, x, f"head.{i}", module.activation) if isinstance(module, Dense) else unit_length(graph, x)
        return x


def folder_name(path: Path) -> str:
    """The name that a folder gives its model; in a hub cache it stands in models--owner--name/snapshots/revision."""
    resolved = path.absolute()
    if resolved.parent.name == "snapshots" and resolved.parent.parent.name.startswith("models--"):
        return resolved.parent.parent.name.rpartition("--")[2]
    return resolved.name


def is_stanford(path: Path) -> bool:
    """Whether a folder is a ColBERT as Stanford's code writes it: the projection beside the encoder's tensors."""
    architectures = read_optional_json(path / "config.json").get("architectures")
    return isinstance(architectures, list) and STANFORD in architectures


def _inline_projection(path: Path, backbone: Backbone) -> Dense:
    """Stanford's projection, whose width stands in the weights' header or, packed, in config.json."""
    hidden = backbone.config["hidden_size"]
    with Weights.open(path) as weights:
        shape = weights.shape("linear.weight")
    if len(shape) != 2:
        raise ModelError(f"{weights.paths[0]}: tensor 'linear.weight' has the shape {list(shape)}, which is no matrix.")
    return Dense("", hidden, shape[0], False, None)


def _read_late(path: Path, entries: Sequence[Entry]) -> LateInteraction:
    masks = [path / entry.path / "config.json" for entry in entries if entry.kind == MASK]
    if len(masks) > 1:
        raise ModelError(f"{path / 'modules.json'}: key 'type' lists {MASK} more than once.")
    return read_late(path, path / entries[0].path / TRANSFORMER_CONFIGS[0], masks[0] if masks else None)


def _from_catalog(path: Path, known: CatalogModel | None) -> tuple[Pooling, tuple[Dense | Normalize, ...]]:
    """How a plain folder without modules.json pools: as the catalog has it for the folder's name, or not."""
    if known is None:
        raise ModelError(
            f"{path / 'modules.json'} is missing and the folder's name is in no catalog, so nothing says how "
            f"tokens become one vector. Use the whole folder as published, or name it so."
        )
    if known.pooling not in POOLING_MODES:
        raise ModelError(f"{path}: {known.name} pools by {known.pooling!r}, which this program does not compute.")
    return Pooling(known.pooling), (Normalize(),) * known.normalize
