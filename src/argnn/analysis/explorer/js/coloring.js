// What nodes can be colored by. A coloring puts every node into a bucket that has one color.

const MEANINGS = {
  kappa: ["curvature κ", "mean over the axes of |log g|; 0 is flat"],
  anisotropy: ["anisotropy", "log of the largest over the smallest entry of g"],
  effective_rank: ["effective rank", "how many axes carry the metric"],
  log_volume: ["log volume", "half the log-determinant; negative where space is contracted"],
  main_variation: ["main variation", "first principal component of log g over the nodes"],
  ricci_norm: ["Ricci norm", "length of the discrete Ricci curvature"],
  dispersion: ["dispersion", "mean relative difference of the metric to the neighbors'"],
  inverse_metric: ["mean 1/g", "the paper's principal curvatures, literally; 1 is flat"],
};

// Okabe and Ito's palette, then lighter and darker kin for more classes.
const PALETTE = [
  "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
  "#b8a800", "#7a5195", "#8c6d31", "#2f4b7c", "#a05d56", "#66a61e",
];
const GREY = "#8a949a";
const RESULT_COLORS = ["#56b4e9", "#d55e00", GREY];
const PART_COLORS = ["#0072b2", "#e69f00", "#009e73", GREY];
const classColors = classes.map((_, k) => PALETTE[k % PALETTE.length]);

const RAMP = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];
// Dark purple would not be seen on a dark page.
const DARK_RAMP = ["#965abe", "#5c78be", ...RAMP.slice(2)];
const STEPS = 48;
const isDark = matchMedia("(prefers-color-scheme: dark)");

// Colors are written #rrggbb everywhere, in the style sheet too: both painters can read that.
function rgb(color) {
  return [1, 3, 5].map((place) => parseInt(color.slice(place, place + 2), 16));
}

function hex(channels) {
  return `#${channels.map((c) => Math.round(c).toString(16).padStart(2, "0")).join("")}`;
}

// A color with a share of another one.
function mixed(color, other, share) {
  const added = rgb(other);
  return hex(rgb(color).map((c, k) => c + share * (added[k] - c)));
}

function rampColor(share) {
  const stops = isDark.matches ? DARK_RAMP : RAMP;
  const place = share * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  return mixed(stops[below], stops[below + 1], place - below);
}

// The extremes are cut: a few far values would leave one color for all others.
function middleRange(numbers) {
  const known = Float64Array.from(numbers).filter((value) => !Number.isNaN(value)).sort();
  const last = known.length - 1;
  if (last < 0) return { low: 0, high: 0, missing: numbers.length };
  let [low, high] = [known[Math.floor(0.02 * last)], known[Math.ceil(0.98 * last)]];
  if (low === high) [low, high] = [known[0], known[last]];
  return { low, high, missing: numbers.length - known.length };
}

// Numbers with a zero of their own vary by their range, relative to the larger end.
function relativeVariation({ low, high }) {
  return high > low ? (high - low) / Math.max(Math.abs(low), Math.abs(high)) : 0;
}

// What hardly varies is grey: a palette would show differences that mean nothing.
function fieldColoring(numbers, title, variation) {
  const range = middleRange(numbers);
  const { low, high, missing } = range;
  const change = variation === undefined ? relativeVariation(range) : variation;
  if (!(high > low) || change < data.hardly) {
    return { bucketOf: () => 0, colors: [GREY], title, low, high, missing, isFlat: true, change };
  }
  const bucketOf = (node) => {
    const value = numbers[node];
    if (Number.isNaN(value)) return STEPS;
    return clamp(Math.floor((value - low) / (high - low) * STEPS), 0, STEPS - 1);
  };
  const colors = Array.from({ length: STEPS }, (_, k) => rampColor(k / (STEPS - 1)));
  return { bucketOf, colors: [...colors, GREY], title, low, high, missing };
}

function axisColoring() {
  const { metric, axes, axisVariation, bestAxis } = layers[state.layer];
  const g = metric();
  const numbers = Float32Array.from({ length: count }, (_, node) => g[node * axes + state.axis]);
  const best = state.axis === bestAxis ? ", which varies most" : "";
  return fieldColoring(numbers, `log g of axis ${state.axis}${best}`, axisVariation[state.axis]);
}

// A feature has no zero of its own: only one that is the same everywhere is grey.
function featureColoring() {
  const width = features.names.length;
  const values = features.values();
  const numbers = Float32Array.from({ length: count }, (_, node) => values[node * width + state.feature]);
  return fieldColoring(numbers, features.names[state.feature], Infinity);
}

// The choices "known 0", "predicted 0", "off 0" and so on: of the first target.
function targetColoring(name) {
  const [what, place] = name.split(" ");
  const target = targets.lines[place];
  if (what !== "off") return fieldColoring(target[what](), targetTitle(what, target), Infinity);
  const numbers = Float32Array.from({ length: count }, (_, node) => targetError(target, node));
  return fieldColoring(numbers, targetTitle(what, target), Infinity);
}

function targetTitle(what, target) {
  const chance = targets.are_labels ? "probability" : "predicted";
  return `${target.name}, ${{ known: "known", predicted: chance, off: "error" }[what]}`;
}

const COLORINGS = {
  label: () => ({
    bucketOf: (node) => (nodes.label[node] < 0 ? classes.length : nodes.label[node]),
    names: [...classes, "no label"],
    colors: [...classColors, GREY],
  }),
  predicted: () => ({
    bucketOf: (node) => nodes.predicted[node],
    names: classes,
    colors: classColors,
  }),
  error: () => ({ bucketOf: resultOf, names: RESULTS, colors: RESULT_COLORS }),
  part: () => ({
    bucketOf: (node) => (nodes.part[node] < 0 ? PARTS.length : nodes.part[node]),
    names: [...PARTS, "none"],
    colors: PART_COLORS,
  }),
  confidence: () => fieldColoring(
    Float32Array.from({ length: count }, (_, node) => confidence(node)),
    "probability of the prediction",
  ),
  feature: featureColoring,
  degree: () => fieldColoring(nodes.degree, "degree"),
  homophily: () => fieldColoring(nodes.homophily, "local homophily"),
  clustering: () => fieldColoring(nodes.clustering, "clustering"),
  axis: axisColoring,
};

function chosenColoring() {
  const found = COLORINGS[state.color];
  if (found) return found();
  if (!MEANINGS[state.color]) return targetColoring(state.color);
  const { statistics, variation } = layers[state.layer];
  const [name, meaning] = MEANINGS[state.color];
  return { ...fieldColoring(statistics[state.color](), name, variation[state.color]), meaning };
}
