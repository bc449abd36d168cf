"""Checks that several areas share: rejections, effects of training, saved weights, lists, formulas and counts."""
