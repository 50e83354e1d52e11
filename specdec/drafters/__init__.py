"""Drafters: one file a method."""

from .adaptive import AdaptiveDrafter
from .base import CopyingDrafter, Drafter, NoDrafter
from .block import BlockDrafter, BlockHead
from .draft_model import DraftModelDrafter, QuantisedDrafter
from .eagle3 import Eagle3Drafter, Eagle3Head, Eagle3TreeDrafter
from .early_exit import EarlyExitDrafter
from .medusa import MedusaDrafter, MedusaHeads, MedusaTreeDrafter
from .mtp import MTPDrafter, MTPHead
from .oracle import OracleDrafter
from .prompt_lookup import PromptLookupDrafter
from .suffix import SuffixDrafter

__all__ = [
    "AdaptiveDrafter",
    "BlockDrafter",
    "BlockHead",
    "CopyingDrafter",
    "DraftModelDrafter",
    "Drafter",
    "Eagle3Drafter",
    "Eagle3Head",
    "Eagle3TreeDrafter",
    "EarlyExitDrafter",
    "MTPDrafter",
    "MTPHead",
    "MedusaDrafter",
    "MedusaHeads",
    "MedusaTreeDrafter",
    "NoDrafter",
    "OracleDrafter",
    "PromptLookupDrafter",
    "QuantisedDrafter",
    "SuffixDrafter",
]
