"""A headless Chromium that opens one page and is spoken to through a pipe, without a network."""

import base64
import json
import os
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-angle=swiftshader",  # WebGL is drawn by the processor
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
)
_PATIENCE = 600  # seconds: only a Chromium that hangs needs them
# Without a graphics card Chromium itself reads every picture of WebGL back to put it on the page.
_OWN_WARNING = "GPU stall due to ReadPixels"
# For Browser.injected: a page that finds no WebGL.
WITHOUT_WEBGL = """
const usual = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...others) {
  return kind.startsWith("webgl") ? null : usual.call(this, kind, ...others);
};
"""
# The map has to be read in the task that has drawn it: WebGL forgets its picture afterwards.
_READ_MAP = """(([x, y, width, height]) => {
  argnnExplorer.paint();
  const copy = document.createElement("canvas");
  const map = document.getElementById("map");
  copy.width = map.width;
  copy.height = map.height;
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.fillStyle = getComputedStyle(map.parentElement).backgroundColor;
  pen.fillRect(0, 0, map.width, map.height);
  pen.drawImage(map, 0, 0);
  return [...pen.getImageData(x, y, width || map.width, height || map.height).data];
})"""


class Browser:
    """One page; use it in a ``with`` statement."""

    def __init__(self, profile: Path) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._count = 0
        self._unread = b""
        ours, theirs = os.pipe(), os.pipe()  # what Chromium reads as 3, and writes as 4
        command = shlex.join(
            [str(CHROMIUM), *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        )
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command} 3<&{ours[0]} 4>&{theirs[1]}"],
            pass_fds=(ours[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._write, self._read = ours[1], theirs[0]
        self._session: str | None = None

    def __enter__(self) -> "Browser":
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(info["targetId"] for info in targets if info["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol, and wait for its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])
            self._notice(answer)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "Chromium does not answer"
            got = os.read(self._read, 1 << 20)
            assert got, "Chromium has ended"
            self._unread += got
        first, self._unread = self._unread.split(b"\0", 1)
        return dict(json.loads(first))

    def _notice(self, event: dict[str, Any]) -> None:
        """Keep what must not happen: errors, and requests for anything but the file itself."""
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            if _OWN_WARNING not in params["entry"]["text"]:
                self.problems.append(str(params["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def size(self, width: int, height: int = 800, *, dark: bool = False, ratio: int = 1) -> None:
        """Size of the window, preferred color scheme, and pixels of the screen per pixel."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=ratio,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: Path) -> float:
        """Open a page of the explorer; returns the seconds until it can be used."""
        began = time.monotonic()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self.js("Boolean(window.argnnExplorer) || document.readyState == 'complete'"):
            time.sleep(0.02)
        assert self.js("Boolean(window.argnnExplorer)"), self.problems
        self.js("argnnExplorer.paint()")
        return time.monotonic() - began

    @contextmanager
    def injected(self, source: str) -> Iterator[None]:
        """Pages that are opened inside run a script before their own."""
        added = self.call("Page.addScriptToEvaluateOnNewDocument", source=source)
        try:
            yield
        finally:
            self.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])

    def map_pixels(self, x: int = 0, y: int = 0, width: int = 0, height: int = 0) -> list[int]:
        """Red, green, blue and opacity of the map's pixels, of all where no size is given."""
        return list(self.js(f"{_READ_MAP}([{x}, {y}, {width}, {height}])"))

    def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def text(self, selector: str) -> str:
        """The text of an element."""
        return str(self.js(f"document.querySelector({json.dumps(selector)}).innerText"))

    def select(self, name: str, text: str) -> None:
        """Choose an option of a select element by its text."""
        done = self.js(
            f"(() => {{ const s = document.getElementById({json.dumps(name)});"
            f"const o = [...s.options].find((o) => o.textContent === {json.dumps(text)});"
            "if (!o) return false; s.value = o.value;"
            "s.dispatchEvent(new Event('change', {bubbles: true})); return true; })()"
        )
        assert done, f"{name} has no option {text}"

    def click_node(self, node: int) -> None:
        """Click the place of a node on the map."""
        self.js("document.getElementById('map').scrollIntoView({block: 'center'})")
        x, y = self.js(
            "(() => { const b = document.getElementById('map').getBoundingClientRect();"
            f"const p = argnnExplorer.place({node}); return [b.left + p[0], b.top + p[1]]; }})()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drag(self, places: list[list[float]], *, shift: bool = False) -> None:
        """Drag the mouse over places of the map."""
        self.js("document.getElementById('map').scrollIntoView({block: 'center'})")
        left, top = self.js(
            "(({left, top}) => [left, top])(document.getElementById('map').getBoundingClientRect())"
        )
        kinds = ["mousePressed", *["mouseMoved"] * (len(places) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*places, places[-1]], strict=True):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=left + x,
                y=top + y,
                button="left",
                buttons=1,
                clickCount=1,
                modifiers=8 if shift else 0,
            )

    def key(self, key: str) -> None:
        """Press a key where the focus is."""
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write a picture of the page."""
        self.js("argnnExplorer.paint()")
        got = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(got["data"]))
