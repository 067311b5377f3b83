"""Model families: `model_type` of config.json -> the class that knows its parameters and its forward pass."""

from engine.models.bert import Bert

FAMILIES = {
    Bert.model_type: Bert,
}
