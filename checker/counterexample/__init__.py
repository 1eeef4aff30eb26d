"""Counterexamples that a person reads: as text, Mermaid, ITF JSON and a page with a timeline."""

from stagewright.checker.counterexample.files import write_all as write_all
from stagewright.checker.counterexample.mermaid import render_mermaid as render_mermaid
from stagewright.checker.counterexample.page import render_page as render_page
from stagewright.checker.counterexample.story import Story as Story, story_of as story_of
from stagewright.checker.counterexample.text import render_text as render_text
from stagewright.spec.text.itf import from_itf as from_itf, to_itf as to_itf
