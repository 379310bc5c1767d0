// What is drawn, apart from where it lies: colors, the nodes that pass the filters, edges.

const EDGE_WIDTH = 0.8;
const EDGES_WHILE_MOVING = 6000; // more take too long where no graphics card helps

const scene = {
  theme: {},
  coloring: null,
  bucket: new Uint16Array(count), // of every node, an index into coloring.colors
  shown: new Uint8Array(count),
  shownCount: 0,
  inHurry: false, // whether the map moves under a painter that is slow
};

// A fixed mixed order of drawing: no class always lies on top of another.
const mixedOrder = mixedNumbers(count);

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["panel", "edge", "new-edge", "faint", "ring", "ink"]) {
    scene.theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

function colorOf(node) {
  return scene.coloring.colors[scene.bucket[node]];
}

function passes(node) {
  const { label, part, result } = state.filter;
  if (state.selected && !state.selected.has(node)) return false;
  if (state.hidden.has(scene.bucket[node])) return false;
  if (label !== ANY && nodes.label[node] !== label) return false;
  if (part !== ANY && nodes.part[node] !== part) return false;
  return result === ANY || resultOf(node) === result;
}

function readColors() {
  scene.coloring = chosenColoring();
  for (let node = 0; node < count; node++) scene.bucket[node] = scene.coloring.bucketOf(node);
}

function readFilters() {
  scene.shownCount = 0;
  for (let node = 0; node < count; node++) {
    scene.shown[node] = passes(node) ? 1 : 0;
    scene.shownCount += scene.shown[node];
  }
}

function chosenEdges() {
  if (state.edges === "none") return null;
  return state.edges === "original" ? originalEdges() : rewiredEdges();
}

// Many edges are drawn thinner than few.
function edgeOpacity(total) {
  return clamp(8 / Math.sqrt(total + 1), 0.02, 0.32);
}

// The share of the edges that is drawn now.
function edgeShare(total) {
  return scene.inHurry ? Math.min(1, EDGES_WHILE_MOVING / total) : 1;
}

function thinningWords() {
  const isThinned = neighborOf.length / 2 > EDGES_WHILE_MOVING;
  return isThinned ? ", with fewer edges while the map moves" : "";
}
