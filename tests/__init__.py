"""Tests: claims about petridish, each a sentence."""
