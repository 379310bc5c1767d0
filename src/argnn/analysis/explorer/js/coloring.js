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

function rampColor(share) {
  const stops = isDark.matches ? DARK_RAMP : RAMP;
  const place = share * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  const low = rgb(stops[below]);
  const high = rgb(stops[below + 1]);
  return hex(low.map((c, k) => c + (place - below) * (high[k] - c)));
}

// The extremes are cut: a few far values would leave one color for all others.
function fieldColoring(numbers, title) {
  const known = Float64Array.from(numbers).filter((value) => !Number.isNaN(value)).sort();
  const last = known.length - 1;
  const low = known.length ? known[Math.floor(0.02 * last)] : 0;
  const high = known.length ? known[Math.ceil(0.98 * last)] : 0;
  const bucketOf = (node) => {
    const value = numbers[node];
    if (Number.isNaN(value)) return STEPS;
    return high > low ? clamp(Math.floor((value - low) / (high - low) * STEPS), 0, STEPS - 1) : 0;
  };
  const colors = Array.from({ length: STEPS }, (_, k) => rampColor(k / (STEPS - 1)));
  return { bucketOf, colors: [...colors, GREY], title, low, high, missing: count - known.length };
}

function axisColoring() {
  const { metric, axes } = layers[state.layer];
  const g = metric();
  const numbers = Float32Array.from({ length: count }, (_, node) => g[node * axes + state.axis]);
  return fieldColoring(numbers, `log g of axis ${state.axis}`);
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
  degree: () => fieldColoring(nodes.degree, "degree"),
  homophily: () => fieldColoring(nodes.homophily, "local homophily"),
  clustering: () => fieldColoring(nodes.clustering, "clustering"),
  axis: axisColoring,
};

function chosenColoring() {
  const found = COLORINGS[state.color];
  if (found) return found();
  return fieldColoring(layers[state.layer].statistics[state.color](), MEANINGS[state.color][0]);
}
