"""Formulas as MathML, which browsers draw themselves: no script, no fonts, nothing fetched."""

import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)
SPACE = '<mspace width="0.17em"></mspace>'
NO_SPACE = 'lspace="0" rspace="0" stretchy="false"'
AS_THE_CONVERTER_READS_IT = [
    (re.compile(r"(\\[td]?frac)(\d)(\d)"), r"\1{\2}{\3}"),  # \frac12 is one half, not twelve by what follows
    (re.compile(r"(\\(?:bar|hat|tilde))\s*(\\[a-zA-Z]+|[a-zA-Z])(?=_)"), r"\1{\2}{}"),  # an index beside, not below
    (re.compile(r"\\Vert"), r"\\parallel "),  # which has room at its sides; a norm is \lVert to \rVert
    (re.compile(r"\\dots"), r"\\ldots"),
    (re.compile(r"\\Big(?=\[)"), r"\\Bigl"),
    (re.compile(r"\\Big(?=\])"), r"\\Bigr"),
]
AS_BROWSERS_SPACE_IT = [
    # log x has a space, log(x) has none; so has d log x
    (re.compile(r"(</m(?:i|n|su[bp]|subsup|frac)>\s*)(?=<mi>(?:log|exp|cos|sin|tanh)</mi>)"), rf"\1{SPACE}"),
    (re.compile(r"<mo>&ApplyFunction;</mo>(?!\s*<mo[^>]*>\()"), rf"\g<0>{SPACE}"),
    (re.compile(r'<mo class="mathopen">([|‖])'), rf'<mo form="prefix" {NO_SPACE}>\1'),
    (re.compile(r"<mo>([|‖])"), rf'<mo form="postfix" {NO_SPACE}>\1'),
]


def mathml(node: nodes.Element, *, block: bool) -> str:
    """The formula of `node`; one that cannot be read is a warning, and stays as it is written."""
    try:
        written = latex2mathml.tex2mathml(replaced(node.astext(), AS_THE_CONVERTER_READS_IT), as_block=block)
    except MathError as error:
        logger.warning("cannot read the formula %s: %s", node.astext(), error, location=node)
        return f"<code>{nodes.unescape(node.astext())}</code>"
    return replaced(written, AS_BROWSERS_SPACE_IT)


def replaced(text: str, rules: list[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def within_a_line(writer, node):
    writer.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def on_its_own(writer, node):
    writer.body.append(f'<div class="formula">{mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (within_a_line, None), (on_its_own, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
