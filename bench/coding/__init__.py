"""Twelve coding tasks in small repositories written for them, for any model (`make bench-coding`).

A task is a repository, a sentence, and a check that the model does not see: a program that is run over the files that
it left, or words that its answer has to have. Nothing of a repository is anybody else's.
"""
