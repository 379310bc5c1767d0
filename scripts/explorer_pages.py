"""Write the pages of runs, open them in Chromium, and say how large and how quick they are.

python scripts/explorer_pages.py RUN... [--pictures docs/images]
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from argnn.outputs.analyze import analyze

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the browser is that of the tests

from browser import WITHOUT_WEBGL, Browser  # noqa: E402

OPENINGS = 5
# Drawing by WebGL ends later than the call: reading one pixel waits for it.
REDRAW = """(([times, isMoving]) => {
  const map = document.getElementById("map");
  const gl = map.getContext("webgl2");
  const pixel = new Uint8Array(4);
  return Array.from({ length: times }, (_, k) => {
    const key = k % 2 ? "ArrowLeft" : "ArrowRight";
    const began = performance.now();
    if (isMoving) map.dispatchEvent(new KeyboardEvent("keydown", { key }));
    argnnExplorer.paint();
    if (gl) gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    else map.getContext("2d").getImageData(0, 0, 1, 1);
    return performance.now() - began;
  });
})"""
FIND = """((id) => {
  const search = document.getElementById("search");
  search.value = id;
  search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  search.value = "";
  search.dispatchEvent(new Event("input"));
})"""


class Picture(NamedTuple):
    """A picture of docs/explorer.md."""

    data: str
    name: str
    top: str
    width: int
    height: int
    dark: bool
    choices: dict[str, str]
    node: int


PICTURES = (
    Picture(
        data="pubmed",
        name="explorer.png",
        top="explore",
        width=1280,
        height=780,
        dark=False,
        choices={"color": "curvature κ", "edges": "original"},
        node=100,
    ),
    Picture(
        data="wisconsin",
        name="explorer_phone.png",
        top="map",
        width=390,
        height=844,
        dark=True,
        choices={"color": "prediction", "edges": "rewired"},
        node=5,
    ),
)


def redraw(browser: Browser, times: int, *, is_moving: bool) -> float:
    """Median milliseconds of drawing the map once."""
    flag = "true" if is_moving else "false"
    return statistics.median(browser.js(f"{REDRAW}([{times}, {flag}])"))


def opening(browser: Browser, page: Path) -> float:
    """Seconds until a page can be used and its map is there."""
    began = time.perf_counter()
    browser.open(page)
    browser.map_pixels(0, 0, 1, 1)  # waits for the picture
    return time.perf_counter() - began


def measured(page: Path, profile: Path, *, webgl: bool) -> str:
    """One line about how a page opens and moves."""
    with Browser(profile) as browser:
        browser.size(1280)
        with nullcontext() if webgl else browser.injected(WITHOUT_WEBGL):
            seconds = [opening(browser, page) for _ in range(OPENINGS)]
        browser.select("edges", "original")
        still = redraw(browser, 11, is_moving=False)
        moving = redraw(browser, 21, is_moving=True)
        words = browser.text("#status").split(". ")[-1]
    return (
        f"  usable after {min(seconds):.2f} to {max(seconds):.2f} s ({OPENINGS} openings), "
        f"redraw of all edges {still:.0f} ms, while moving {moving:.0f} ms. {words}"
    )


def photograph(page: Path, picture: Picture, profile: Path, folder: Path) -> None:
    """Write one picture of a page."""
    with Browser(profile) as browser:
        browser.size(picture.width, picture.height, dark=picture.dark)
        browser.open(page)
        for name, text in picture.choices.items():
            browser.select(name, text)
        browser.js(f"{FIND}({picture.node})")
        browser.js(f"document.getElementById('{picture.top}').scrollIntoView()")
        browser.picture(folder / picture.name, whole=False)
    shrink(folder / picture.name)


def shrink(path: Path) -> None:
    """Keep 256 colors of a picture: the docs need no more, and the file is a third as large."""
    with Image.open(path) as whole:
        small = whole.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def written(run: Path, page: Path, data_root: str | None) -> dict[str, Any]:
    """Write the page of a run; prints its size."""
    began = time.perf_counter()
    report = analyze(run, page, data_root=data_root)
    seconds = time.perf_counter() - began
    print(
        f"{report['data']}, {report['model']}: {report['nodes']:,} nodes, {report['layers']} "
        f"layers, {report['size'] / 1e6:.2f} MB, written in {seconds:.0f} s"
    )
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    """Write, measure and photograph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="+", type=Path, help="folders of runs")
    parser.add_argument("--pictures", type=Path, help="folder for the pictures of the docs")
    parser.add_argument("--data-root", help="folder of the raw benchmark files")
    options = parser.parse_args(arguments)
    for run in options.run:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            page = folder / "page.html"
            report = written(run, page, options.data_root)
            for webgl in (True, False):
                print(measured(page, folder / f"profile-{webgl}", webgl=webgl))
            for picture in PICTURES:
                if options.pictures and picture.data == report["data"]:
                    photograph(page, picture, folder / "pictures", options.pictures)


if __name__ == "__main__":
    main()
