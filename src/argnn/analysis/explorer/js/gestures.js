// Keys, mouse and fingers on the map.

const CLICK_SLACK = 4; // pixels that a hand may tremble
const FINGER_REACH = 22;

const KEYS = {
  n: () => chooseNext(1),
  p: () => chooseNext(-1),
  "+": () => zoom(1.25),
  "=": () => zoom(1.25),
  "-": () => zoom(0.8),
  0: reset,
  s: selectShown,
  l: () => setLasso(!lasso.isOn),
  Escape: letGo,
  ArrowLeft: () => shift(40, 0),
  ArrowRight: () => shift(-40, 0),
  ArrowUp: () => shift(0, 40),
  ArrowDown: () => shift(0, -40),
};

const lasso = { isOn: false, outline: null };

function setLasso(isOn) {
  lasso.isOn = isOn;
  at("lasso").setAttribute("aria-pressed", String(isOn));
}

// First the lasso, then the chosen node, then the selection.
function letGo() {
  if (lasso.isOn) setLasso(false);
  else if (state.chosen >= 0) choose(-1);
  else if (state.selected) select(null);
}

// The next node in the order of their numbers that passes the filters.
function chooseNext(step) {
  if (!scene.shownCount) return;
  let node = state.chosen < 0 && step < 0 ? 0 : state.chosen;
  do node = (node + step + count) % count;
  while (!scene.shown[node]);
  choose(node, true);
}

function listenKeys() {
  canvas.addEventListener("keydown", (event) => {
    const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}

function listenWheel() {
  const turn = (event) => {
    // A page can be scrolled past the map; the map takes the wheel once it has been clicked.
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  };
  canvas.addEventListener("wheel", turn, { passive: false });
}

function listenPointers() {
  const fingers = new Map();
  let dragged = 0;
  let spread = 0;

  function pinch() {
    const [a, b] = [...fingers.values()];
    const now = Math.hypot(a[0] - b[0], a[1] - b[1]);
    if (spread) zoom(now / spread, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
    spread = now;
    dragged = Infinity;
  }

  function move({ pointerId, offsetX, offsetY }) {
    const before = fingers.get(pointerId);
    if (!before) {
      showTip(offsetX, offsetY);
      return;
    }
    const dx = offsetX - before[0];
    const dy = offsetY - before[1];
    fingers.set(pointerId, [offsetX, offsetY]);
    dragged += Math.abs(dx) + Math.abs(dy);
    if (lasso.outline) {
      lasso.outline.push([offsetX, offsetY]);
      paintMarks();
    } else if (fingers.size === 2) pinch();
    else if (fingers.size === 1 && dragged >= CLICK_SLACK) shift(dx, dy);
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
    dragged = 0;
    spread = 0;
    lasso.outline = lasso.isOn || event.shiftKey ? [[event.offsetX, event.offsetY]] : null;
  });
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", (event) => {
    fingers.delete(event.pointerId);
    const outline = lasso.outline;
    lasso.outline = null;
    if (outline && dragged > CLICK_SLACK) {
      setLasso(false);
      selectInside(outline);
      paintMarks();
      return;
    }
    const reach = event.pointerType === "touch" ? FINGER_REACH : REACH;
    if (dragged <= CLICK_SLACK) choose(nearest(event.offsetX, event.offsetY, reach));
  });
  canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", hideTip);
}

function hideTip() {
  at("tip").hidden = true;
}

function showTip(x, y) {
  const node = nearest(x, y);
  const tip = at("tip");
  tip.hidden = node < 0;
  if (node < 0) return;
  tip.textContent = nodes.label ? `${nameOf(node)}: ${classOf(nodes.label[node])}` : nameOf(node);
  tip.style.left = `${Math.min(x + 12, Math.max(0, frame.width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, y - 30)}px`;
}
