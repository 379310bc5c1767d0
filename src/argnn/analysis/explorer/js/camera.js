// Where the nodes lie, and how they come to the screen. Both painters use the same look.

const EYE = 2.8; // distance of the eye; the nodes lie between -1 and 1
const MOST_FOG = 0.6; // how much of the background the farthest nodes take
const frame = { width: 0, height: 0, ratio: 1 }; // size of the map, and device pixels per pixel

// The plane is space without a third coordinate, looked at from the front.
const places = data.views.map((view, k) => later(() => centred(unpack(view.points), k + 2)));

function centred(points, dimensions) {
  const low = Array(dimensions).fill(Infinity);
  const high = Array(dimensions).fill(-Infinity);
  points.forEach((value, k) => {
    const axis = k % dimensions;
    low[axis] = Math.min(low[axis], value);
    high[axis] = Math.max(high[axis], value);
  });
  const half = Math.max(...low.map((value, axis) => (high[axis] - value) / 2)) || 1;
  const found = new Float32Array(3 * count);
  points.forEach((value, k) => {
    const axis = k % dimensions;
    const middle = (low[axis] + high[axis]) / 2;
    found[3 * Math.floor(k / dimensions) + axis] = (value - middle) / half;
  });
  return {
    points: found,
    wide: (high[0] - low[0]) / 2 / half,
    tall: (high[1] - low[1]) / 2 / half,
  };
}

// Pixels that one unit of the map takes.
function mapUnit() {
  const { width, height } = frame;
  const shorter = Math.min(width, height);
  if (state.view === SPACE) return 0.46 * 0.85 * shorter * state.scale;
  const { wide, tall } = places[PLANE]();
  const room = Math.min(width / Math.max(wide, 0.01), height / Math.max(tall, 0.01));
  return 0.46 * Math.min(room, 4 * shorter) * state.scale;
}

function currentLook() {
  const yaw = state.view === SPACE ? state.yaw : 0;
  const pitch = state.view === SPACE ? state.pitch : 0;
  return {
    points: places[state.view]().points,
    unit: mapUnit(),
    x: frame.width / 2 + state.x,
    y: frame.height / 2 + state.y,
    cosYaw: Math.cos(yaw),
    sinYaw: Math.sin(yaw),
    cosPitch: Math.cos(pitch),
    sinPitch: Math.sin(pitch),
  };
}

// Place of a node in pixels from the upper left corner, and how far behind the middle it is.
// The vertex shader of painter_webgl.js does the same.
function project(look, node) {
  const { points, unit, cosYaw, sinYaw, cosPitch, sinPitch } = look;
  const x = points[3 * node];
  const y = points[3 * node + 1];
  const z = points[3 * node + 2];
  const side = cosYaw * x + sinYaw * z;
  const back = -sinYaw * x + cosYaw * z;
  const up = cosPitch * y - sinPitch * back;
  const far = sinPitch * y + cosPitch * back;
  const near = nearness(far);
  return [look.x + unit * side * near, look.y - unit * up * near, far];
}

const screen = {
  x: new Float32Array(count),
  y: new Float32Array(count),
  far: new Float32Array(count),
  of: "",
};

// Places of all nodes; found again only when something has moved.
function projectAll() {
  const { view, scale, x, y, yaw, pitch } = state;
  const now = [view, scale, x, y, yaw, pitch, frame.width, frame.height].join();
  if (screen.of === now) return screen;
  const look = currentLook();
  for (let node = 0; node < count; node++) {
    [screen.x[node], screen.y[node], screen.far[node]] = project(look, node);
  }
  screen.of = now;
  return screen;
}

function nodeRadius() {
  const usual = clamp(70 / Math.sqrt(count), 1.6, 5);
  return usual * clamp(Math.sqrt(state.scale), 1, 2);
}

// In space, near nodes are larger, and far ones fade into the background.
function nearness(far) {
  return EYE / (EYE + far);
}

function fog(far) {
  return state.view === SPACE ? MOST_FOG * clamp((far + 1) / 2, 0, 1) : 0;
}

function faintRadius() {
  return Math.max(1.2, 0.6 * nodeRadius());
}

function isOutside(x, y, margin) {
  return x < -margin || y < -margin || x > frame.width + margin || y > frame.height + margin;
}

// Brings a node to the middle if it is not on the screen; says whether the map has moved.
function bringIntoView(node) {
  const [x, y] = project(currentLook(), node);
  if (!isOutside(x, y, -20)) return false;
  state.x += frame.width / 2 - x;
  state.y += frame.height / 2 - y;
  return true;
}
