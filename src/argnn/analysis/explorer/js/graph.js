// The graph and its learned layers, as contents.py describes them.

const data = JSON.parse(at("data").textContent);
const count = data.count;
const classes = data.classes;
const PARTS = ["training", "validation", "test"];
const RESULTS = ["right", "wrong", "no label"];
const [RIGHT, WRONG, UNKNOWN] = [0, 1, 2];

const nodes = {};
for (const [name, packed] of Object.entries(data.nodes)) nodes[name] = unpack(packed);

// The neighbors of node n are neighborOf[k] for k from firstNeighbor[n] to firstNeighbor[n + 1].
const neighborOf = unpack(data.neighbors.source);
const firstNeighbor = new Uint32Array(count + 1);
unpack(data.neighbors.count).forEach((degree, node) => {
  firstNeighbor[node + 1] = firstNeighbor[node] + degree;
});

const layers = data.layers.map((layer) => ({
  number: layer.number,
  axes: layer.axes,
  nrmd: layer.nrmd,
  statistics: laterEach(layer.statistics),
  variation: layer.variation,
  axisVariation: layer.axis_variation,
  bestAxis: layer.best_axis,
  unusual: layer.unusual,
  metric: later(() => unpack(layer.log_metric)),
  usual: later(() => columnMeans(unpack(layer.log_metric), layer.axes)),
  tau: later(() => unpack(layer.tau)),
  attention: later(() => unpack(layer.attention)),
  weight: later(() => unpack(layer.weight)),
}));

// Numbers or labels that are predicted instead of classes; null where there are none.
const targets = data.targets && {
  ...data.targets,
  lines: data.targets.lines.map((line) => ({
    ...line,
    known: later(() => unpack(line.known)),
    predicted: later(() => unpack(line.predicted)),
  })),
};
const features = data.features && {
  ...data.features,
  values: later(() => unpack(data.features.values)),
};

function laterEach(statistics) {
  const entries = Object.entries(statistics);
  return Object.fromEntries(entries.map(([name, packed]) => [name, later(() => unpack(packed))]));
}

function nameOf(node) {
  return data.ids ? data.ids[node] : String(node);
}

function classOf(label) {
  return label === undefined || label < 0 ? "no label" : classes[label];
}

function partOf(node) {
  return nodes.part && nodes.part[node] >= 0 ? PARTS[nodes.part[node]] : "none";
}

function resultOf(node) {
  if (!nodes.predicted || !nodes.label || nodes.label[node] < 0) return UNKNOWN;
  return nodes.predicted[node] === nodes.label[node] ? RIGHT : WRONG;
}

function neighborPlaces(node) {
  const places = [];
  for (let k = firstNeighbor[node]; k < firstNeighbor[node + 1]; k++) places.push(k);
  return places;
}

const originalEdges = later(() => {
  const low = [];
  const high = [];
  for (let node = 0; node < count; node++) {
    for (let k = firstNeighbor[node]; k < firstNeighbor[node + 1]; k++) {
      if (neighborOf[k] >= node) continue;
      low.push(neighborOf[k]);
      high.push(node);
    }
  }
  return { low, high, isNew: new Uint8Array(low.length) };
});

const rewiredEdges = later(() => {
  const before = originalEdges();
  const known = new Set();
  before.low.forEach((a, k) => known.add(a * count + before.high[k]));
  const low = unpack(data.rewired.low);
  const high = unpack(data.rewired.high);
  const isNew = Uint8Array.from(low, (a, k) => (known.has(a * count + high[k]) ? 0 : 1));
  return { low, high, isNew };
});
