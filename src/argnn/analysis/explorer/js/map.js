// The map: when it is painted, how it moves, and which node is under a point.

const [NEAREST_ZOOM, FARTHEST_ZOOM] = [80, 0.4];
const MOST_PITCH = 1.55; // looking from right above
const REACH = 14;
const REST = 160; // milliseconds after the last move until everything is drawn

const painter = startPainter();
const canvas = painter.canvas;
let waiting = 0;
let settling = 0;

function startPainter() {
  const found = webglPainter(at("map"));
  if (found) return found;
  // A canvas that once gave a WebGL context gives no other one.
  const fresh = at("map").cloneNode();
  at("map").replaceWith(fresh);
  return canvasPainter(fresh);
}

function draw() {
  if (!waiting) waiting = requestAnimationFrame(paint);
}

function paint() {
  cancelAnimationFrame(waiting);
  waiting = 0;
  if (!frame.width) return;
  painter.paint();
  paintMarks();
}

function resize() {
  const box = canvas.getBoundingClientRect();
  frame.width = box.width;
  frame.height = box.height;
  frame.ratio = Math.min(window.devicePixelRatio || 1, 2);
  for (const element of [canvas, marks]) {
    element.width = Math.round(frame.width * frame.ratio);
    element.height = Math.round(frame.height * frame.ratio);
  }
  // A canvas is empty after a change of size: no frame may pass before it is drawn.
  paint();
}

function moved() {
  if (painter.isSlow) hurry();
  draw();
}

function hurry() {
  scene.inHurry = true;
  clearTimeout(settling);
  settling = setTimeout(() => {
    scene.inHurry = false;
    draw();
  }, REST);
}

function zoom(factor, x = frame.width / 2, y = frame.height / 2) {
  const next = clamp(state.scale * factor, FARTHEST_ZOOM, NEAREST_ZOOM);
  const real = next / state.scale;
  state.x = (x - frame.width / 2) * (1 - real) + state.x * real;
  state.y = (y - frame.height / 2) * (1 - real) + state.y * real;
  state.scale = next;
  moved();
}

// Moves the map in the plane, turns it in space.
function shift(dx, dy) {
  if (state.view === SPACE) {
    state.yaw += dx / 150;
    state.pitch = clamp(state.pitch + dy / 150, -MOST_PITCH, MOST_PITCH);
  } else {
    state.x += dx;
    state.y += dy;
  }
  moved();
}

function reset() {
  Object.assign(state, FIRST_LOOK);
  draw();
}

function nearest(x, y, reach = REACH) {
  const places = projectAll();
  let best = -1;
  let least = reach * reach;
  for (let node = 0; node < count; node++) {
    if (!scene.shown[node]) continue;
    const distance = (places.x[node] - x) ** 2 + (places.y[node] - y) ** 2;
    if (distance >= least) continue;
    least = distance;
    best = node;
  }
  return best;
}

function recolor() {
  readColors();
  if (state.hidden.size) {
    state.hidden.clear();
    refilter();
  }
  painter.colorsChanged();
  showLegend();
  showStatus();
  draw();
}

function refilter() {
  readFilters();
  painter.colorsChanged();
  painter.edgesChanged();
  showStatus();
  draw();
}

function choose(node, intoView) {
  state.chosen = node;
  if (node < 0 && !intoView) at("announce").textContent = "";
  canvas.dataset.chosen = String(node);
  showDetail();
  if (intoView && node >= 0 && bringIntoView(node)) draw();
  else paintMarks();
}
