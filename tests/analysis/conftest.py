"""A browser for the pages of all files of this folder."""

import contextlib

import pytest

from argnn.analysis.explorer import document, page
from browser import WITHOUT_WEBGL, Browser

PAINTER_SCRIPTS = {
    "canvas": WITHOUT_WEBGL,
    "refused shaders": "WebGL2RenderingContext.prototype.getProgramParameter = () => false;",
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def opened(browser, tmp_path):
    """Open the page of a subject; afterwards nothing may have gone wrong or out."""
    path = tmp_path / "page.html"
    browser.problems.clear()
    browser.requests.clear()

    with contextlib.ExitStack() as stack:

        def open_page(about, width=1280, *, dark=False, ratio=1, painter="webgl"):
            path.write_bytes(about if isinstance(about, bytes) else page(document(about)))
            browser.size(width, dark=dark, ratio=ratio)
            if painter in PAINTER_SCRIPTS:
                stack.enter_context(browser.injected(PAINTER_SCRIPTS[painter]))
            browser.open(path)
            return browser

        yield open_page
    browser.js("1")  # events that are still on their way
    assert browser.problems == []
    assert {url for url in browser.requests if not url.startswith("blob:")} == {path.as_uri()}
