"""Write the pages of runs, open them in Chromium, and say how large and how quick they are.

python scripts/explorer_pages.py RUN... [--pictures docs/images] [--csv docs/results/explorer.csv]
"""

import argparse
import csv
import datetime
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

import argnn

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


class Picture(NamedTuple):
    """A picture of docs/explorer.md: the page as it opens, after some choices."""

    data: str
    name: str
    width: int
    height: int
    dark: bool
    choices: dict[str, str]


PICTURES = (
    Picture("pubmed", "explorer.png", 1280, 800, dark=False, choices={"edges": "original"}),
    Picture("wisconsin", "explorer_phone.png", 390, 844, dark=True, choices={"edges": "original"}),
)
HEADER = (
    "page and painter",
    "size",
    "argnn analyze",
    "of it processor time",
    f"usable after ({OPENINGS} openings)",
    "redraw, all edges",
    "redraw, moving",
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


def measured(page: Path, profile: Path, *, webgl: bool) -> list[str]:
    """Cells about how a page opens and moves; the first one names the painter."""
    with Browser(profile) as browser:
        browser.size(1280)
        with nullcontext() if webgl else browser.injected(WITHOUT_WEBGL):
            seconds = [opening(browser, page) for _ in range(OPENINGS)]
        browser.select("edges", "original")
        still = redraw(browser, 11, is_moving=False)
        moving = redraw(browser, 21, is_moving=True)
        is_canvas = "Drawn without WebGL" in browser.text("#status")
    return [
        "canvas" if is_canvas else "WebGL in software",
        f"{min(seconds):.2f} to {max(seconds):.2f} s",
        f"{still:.0f} ms",
        f"{moving:.0f} ms",
    ]


def photograph(page: Path, picture: Picture, profile: Path, folder: Path) -> None:
    """Write one picture of a page."""
    with Browser(profile) as browser:
        browser.size(picture.width, picture.height, dark=picture.dark)
        browser.open(page)
        for name, text in picture.choices.items():
            browser.select(name, text)
        browser.picture(folder / picture.name, whole=False)
    shrink(folder / picture.name)


def shrink(path: Path) -> None:
    """Keep 256 colors of a picture: the docs need no more, and the file is a third as large."""
    with Image.open(path) as whole:
        small = whole.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def written(run: Path, page: Path, data_root: str | None) -> tuple[dict[str, Any], list[str]]:
    """Write the page of a run by the command; what it says, and cells about size and time."""
    root = [] if data_root is None else ["--data-root", data_root]
    command = [sys.executable, "-m", "argnn", "analyze", str(run), "--out", str(page), "--json"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([*command, *root], check=True, stdout=subprocess.PIPE)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report = json.loads(done.stdout)
    return report, [f"{report['size'] / 1e6:.1f} MB", f"{wall:.0f} s", f"{busy:.0f} s"]


def store(rows: Sequence[Sequence[str]], path: Path, machine: str, note: str) -> None:
    """Write the table that docs/explorer.md shows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(
            "# command: python scripts/explorer_pages.py RUN... --csv docs/results/explorer.csv\n"
        )
        file.write(f"# machine: {machine}\n# versions: argnn {argnn.__version__}\n")
        file.write(f"# date: written on {datetime.date.today()}\n")
        file.write(f"# note: {note}\n" if note else "")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([HEADER, *rows])


def main(arguments: Sequence[str] | None = None) -> None:
    """Write, measure and photograph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="+", type=Path, help="folders of runs")
    parser.add_argument("--pictures", type=Path, help="folder for the pictures of the docs")
    parser.add_argument("--data-root", help="folder of the raw benchmark files")
    parser.add_argument("--csv", type=Path, help="file for the table of the docs")
    parser.add_argument("--machine", default="this machine", help="the machine, in words")
    parser.add_argument("--note", default="", help="what a reader of the table has to know")
    options = parser.parse_args(arguments)
    rows: list[list[str]] = []
    for run in options.run:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            page = folder / "page.html"
            report, cells = written(run, page, options.data_root)
            for webgl in (True, False):
                painter, *speed = measured(page, folder / f"profile-{webgl}", webgl=webgl)
                title = f"{Path(report['data']).name}, {report['nodes']:,} nodes: {painter}"
                rows.append([title, *cells, *speed])
                print(*rows[-1], sep=", ")
            for picture in PICTURES:
                if options.pictures and picture.data == report["data"]:
                    photograph(page, picture, folder / "pictures", options.pictures)
    if options.csv:
        store(rows, options.csv, options.machine, options.note)


if __name__ == "__main__":
    main()
