"""Drafters: one file a method."""

from .adaptive import AdaptiveDrafter
from .base import Drafter, NoDrafter
from .draft_model import DraftModelDrafter
from .early_exit import EarlyExitDrafter
from .prompt_lookup import PromptLookupDrafter

__all__ = ["AdaptiveDrafter", "DraftModelDrafter", "Drafter", "EarlyExitDrafter", "NoDrafter", "PromptLookupDrafter"]
