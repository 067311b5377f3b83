"""RoBERTa and XLM-RoBERTa: BERT's encoder whose positions start behind the padding id.

Papers: Liu et al. 2019, https://arxiv.org/abs/1907.11692; Conneau et al. 2020, https://arxiv.org/abs/1911.02116.
Reference followed:
https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/xlm_roberta/modeling_xlm_roberta.py
"""

from __future__ import annotations

from typing import Any

from engine.models.bert import Bert
from engine.models.checks import check_whole
from engine.plan import Graph, Value


class Roberta(Bert):
    """Every encoder with `model_type` "roberta"."""

    prefixes = ("", "roberta.")

    @staticmethod
    def canonical(config: dict[str, Any]) -> dict[str, Any]:
        """Positions count from pad_token_id + 1: so many rows of the position table are never a position."""
        found = {"pad_token_id": 1} | Bert.canonical(config)
        check_whole(found, "pad_token_id", least=0)
        return found | {"position_offset": found["pad_token_id"] + 1}

    @staticmethod
    def forward(g: Graph, config: dict[str, Any]) -> Value:
        return Bert.forward(g, config)


class XlmRoberta(Roberta):
    """Every encoder with `model_type` "xlm-roberta": multilingual-e5-base and -large, bge-m3."""
