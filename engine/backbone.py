"""The Transformer module of a model folder: which family, its config under one set of names, and how long a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.models import FAMILIES, static
from engine.models.checks import MAX_LAYERS, UncomputedError, check_activation
from engine.models.family import Family
from engine.published import either, present, read_json, read_optional_json
from engine.tokenizer import BagTokenizer, StaticEmbeddingTokenizer, Tokenizer
from engine.weights.safetensors import Weights

# The Transformer module's own file has had a name for each family.
TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json",
    "sentence_camembert_config.json", "sentence_albert_config.json", "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)  # fmt: skip

MAX_HEAD_WIDTH = 512  # what the kernels hold of one head
MAX_TOKENS = 1 << 18  # of one text: as many rows do the tables of rotary positions have

# Families whose forward pass here is that of code which folders of theirs bring along.
PUBLISHED_WITH_CODE = ("nomic_bert",)

# Sizes in config.json that every family counts on.
SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")


@dataclass(frozen=True)
class Backbone:
    """path: where config.json, the tokenizer and the weights lie. config: canonical (engine.models.family).

    max_tokens: longest input in tokens, special tokens included. lowercase: whether the text is lowered first.
    """

    path: Path
    model_type: str
    config: dict[str, Any]
    max_tokens: int
    lowercase: bool

    @property
    def family(self) -> Family:
        return FAMILIES[self.model_type]

    def tokenizer(self) -> Tokenizer:
        """The folder's tokenizer, checked to fit the word table."""
        kind = Tokenizer
        if self.model_type == static.MODEL_TYPE:
            kind = BagTokenizer if "model_type" in self.config else StaticEmbeddingTokenizer
        rows = self.config["vocab_size"]
        found = kind.open(self.path, self.max_tokens, rows, model_type=self.model_type, lowercase=self.lowercase)
        self._check_padding(found)
        return found

    def _check_padding(self, tokenizer: Tokenizer) -> None:
        """Where positions count from the padding id, refuse a tokenizer whose padding token is another one."""
        offset, pad = self.config.get("position_offset"), tokenizer.token_id("<pad>")
        if offset is not None and pad is not None and pad != offset - 1:
            raise ModelError(
                f"{self.path / 'config.json'}: key 'pad_token_id' is {offset - 1}, but the tokenizer's <pad> is {pad}; "
                f"the two do not belong together."
            )

    def for_lengths(self, lengths: Iterable[int | None]) -> Backbone:
        """The same for inputs of these lengths, None being its own: late interaction has limits besides."""
        room = self.config["max_position_embeddings"] - self.config.get("position_offset", 0)
        longest = min(room, max(self.max_tokens if length is None else length for length in lengths))
        return replace(self, max_tokens=longest, config={**self.config, "max_tokens": longest})

    @classmethod
    def open(cls, path: Path) -> Backbone:
        """Read and check the folder; ModelError names the file and the key of whatever cannot be computed."""
        model_type, config = _family_config(path / "config.json")
        settings = next((path / name for name in TRANSFORMER_CONFIGS if present(path / name)), None)
        own = {} if settings is None else read_json(settings)
        config["max_tokens"] = _max_tokens(path, config, settings, own)
        lowercase = own.get("do_lower_case", False)
        if not isinstance(lowercase, bool):
            raise ModelError(f"{settings}: key 'do_lower_case' is {lowercase!r}, neither true nor false.")
        return cls(path, model_type, config, config["max_tokens"], lowercase)

    @classmethod
    def open_static(cls, path: Path) -> Backbone:
        """A static model: most of its sizes stand in the weights' header, and it may lack config.json."""
        file = path / "config.json"
        published = read_optional_json(file)
        with Weights.open(path) as weights:
            config = static.sizes(published, weights)
        return cls(path, static.MODEL_TYPE, config, config["max_tokens"], lowercase=False)


@dataclass(frozen=True)
class ReadFolder:
    """What a model's folder and a reranker's have in common.

    path: the folder. backbone: its Transformer module, mostly in the same folder.
    """

    path: Path
    name: str
    backbone: Backbone

    @property
    def transformer(self) -> Path:
        """Where config.json, the tokenizer and the weights lie."""
        return self.backbone.path

    @property
    def model_type(self) -> str:
        return self.backbone.model_type

    @property
    def config(self) -> dict[str, Any]:
        """The canonical config."""
        return self.backbone.config

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens, special tokens included."""
        return self.backbone.max_tokens

    @property
    def hidden(self) -> int:
        """Width of a token state."""
        return int(self.config["hidden_size"])


def _family_config(file: Path) -> tuple[str, dict[str, Any]]:
    """The family's name and its canonical config, checked."""
    published = read_json(file)
    model_type = published.get("model_type")
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None or not isinstance(model_type, str):
        raise ModelError(
            f"{file}: key 'model_type' is {model_type!r}; this program computes {', '.join(sorted(FAMILIES))}."
        )
    if published.get("quantization_config") is not None:
        raise ModelError(
            f"{file}: key 'quantization_config' asks for a foreign quantised format, which is not read here."
        )
    if published.get("auto_map") and model_type not in PUBLISHED_WITH_CODE:
        raise ModelError(
            f"{file}: key 'auto_map' is {published['auto_map']!r}, code of the model's own, which is never run here."
        )
    for key, allowed in family.unsupported.items():
        if key in published and published[key] not in allowed:
            raise ModelError(
                f"{file}: key {key!r} is {published[key]!r}; this program computes {either(allowed)} only."
            )
    try:
        config = family.canonical(published)
        check_activation({"hidden_act": None} | config, "hidden_act")
    except KeyError as error:
        raise ModelError(f"{file}: key {error.args[0]!r} is missing; {model_type} models need it.") from error
    except UncomputedError as error:
        raise ModelError(f"{file}: {error}.") from error
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ModelError(f"{file} has a size that is not a positive whole number ({error}).") from error
    _check_sizes(file, config)
    try:
        family.parameters(config)
    except KeyError as error:
        raise ModelError(f"{file}: key {error.args[0]!r} is missing; {model_type} models need it.") from error
    return model_type, config


def _check_sizes(file: Path, config: Mapping[str, Any]) -> None:
    """Refuse sizes that no forward pass can have, and activations that are not computed."""
    for key in SIZES:
        if type(config.get(key)) is not int or config[key] <= 0:
            raise ModelError(f"{file}: key {key!r} is {config.get(key)!r}, not a positive whole number.")
    if config["num_hidden_layers"] > MAX_LAYERS:
        raise ModelError(f"{file}: key 'num_hidden_layers' is {config['num_hidden_layers']}; no model has so many.")
    if not config.get("head_dim") and config["hidden_size"] % config["num_attention_heads"]:
        raise ModelError(
            f"{file}: key 'hidden_size' ({config['hidden_size']}) is no multiple of "
            f"'num_attention_heads' ({config['num_attention_heads']})."
        )
    epsilon = config.get("layer_norm_eps")
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        raise ModelError(f"{file}: key 'layer_norm_eps' is {epsilon!r}, not a small positive number.")
    heads, shared = config["num_attention_heads"], config.get("num_key_value_heads") or config["num_attention_heads"]
    if type(shared) is not int or shared <= 0 or heads % shared:
        raise ModelError(f"{file}: key 'num_key_value_heads' is {shared!r}, which does not divide {heads} heads.")
    width = config.get("head_dim") or config["hidden_size"] // heads
    if type(width) is not int or not 0 < width <= MAX_HEAD_WIDTH:
        raise ModelError(f"{file}: key 'head_dim' is {width!r}, not a width from 1 to {MAX_HEAD_WIDTH}.")
    if width % 2 and not {"theta", "thetas"}.isdisjoint(config):
        raise ModelError(f"{file}: heads are {width} numbers wide, and an odd number cannot be rotated in pairs.")


def _max_tokens(path: Path, config: Mapping[str, Any], settings: Path | None, own: Mapping[str, Any]) -> int:
    """The model's own max_seq_length, else its tokenizer's model_max_length, never more than it has positions."""
    positions, offset = config.get("max_position_embeddings"), config.get("position_offset", 0)
    if type(positions) is not int or positions <= offset:
        raise ModelError(f"{path / 'config.json'}: key 'max_position_embeddings' is {positions!r}, not a size.")
    room = positions - int(offset)
    file, key, limit = settings, "max_seq_length", own.get("max_seq_length")
    if limit is None:
        file, key = path / "tokenizer_config.json", "model_max_length"
        limit = read_optional_json(file).get(key)
    if limit is None:
        file, key, limit = path / "config.json", "max_position_embeddings", room
    # Some tokenizers publish 1e30 for "no limit", as a number with an exponent.
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 3:
        raise ModelError(f"{file}: key {key!r} is {limit!r}, not a number of tokens.")
    if min(limit, room) > MAX_TOKENS:
        raise ModelError(f"{file}: key {key!r} is {limit!r}; this program computes texts of up to {MAX_TOKENS} tokens.")
    return int(min(limit, room))
