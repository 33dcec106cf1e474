"""Pages embedded in notebooks."""

from coterie.web.markup import Markup, escape


def embedded(page: str, height: int = 660) -> Markup:
    """Return an iframe that contains a page; its scripts are sandboxed.

    Examples
    --------
    >>> from coterie.web import embedded, page
    >>> embedded(page("Empty"), 200)[:62]
    '<iframe sandbox="allow-scripts" width="100%" height="200" fram'
    """
    attributes = f'sandbox="allow-scripts" width="100%" height="{int(height)}" frameborder="0"'
    return Markup(f'<iframe {attributes} srcdoc="{escape(str(page))}"></iframe>')
