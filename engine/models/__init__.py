"""Model families: `model_type` of config.json -> the class that knows its parameters and its forward pass."""

from __future__ import annotations

from engine.models.bert import Bert
from engine.models.distilbert import DistilBert
from engine.models.family import Family
from engine.models.gemma3 import Gemma3Text
from engine.models.modernbert import ModernBert
from engine.models.mpnet import MPNet
from engine.models.nomic import NomicBert
from engine.models.qwen3 import Qwen3
from engine.models.roberta import Roberta, XlmRoberta
from engine.models.static import Static

FAMILIES: dict[str, Family] = {
    "bert": Bert(),
    "distilbert": DistilBert(),
    "gemma3_text": Gemma3Text(),
    "model2vec": Static(),
    "modernbert": ModernBert(),
    "mpnet": MPNet(),
    "nomic_bert": NomicBert(),
    "qwen3": Qwen3(),
    "roberta": Roberta(),
    "xlm-roberta": XlmRoberta(),
}
