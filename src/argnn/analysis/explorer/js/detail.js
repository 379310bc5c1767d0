// The panel beside the map: one node, its metric and its neighbors.

const MOST_CLASSES = 8;
const MOST_NEIGHBORS = 40;

function showDetail() {
  const box = at("detail");
  const node = state.chosen;
  if (node < 0) {
    box.replaceChildren(...(state.selected ? selectionPart() : summaryParts()));
    box.scrollTop = 0;
    return;
  }
  const facts = nodeFacts(node);
  const back = makeButton("Back", () => choose(-1), "back");
  box.replaceChildren(back, make("h3", `Node ${nameOf(node)}`), addPairs(make("dl"), facts));
  if (nodes.predicted) box.append(...probabilityPart(node));
  if (layers.length) box.append(...geometryPart(node));
  box.append(...neighborPart(node));
  box.scrollTop = 0;
  announce(node, facts);
}

function announce(node, facts) {
  const words = facts.slice(0, 3).map(([name, text]) => `${name}: ${text}`);
  at("announce").textContent = [`Node ${nameOf(node)} chosen`, ...words].join(", ");
}

function nodeFacts(node) {
  const facts = [];
  if (nodes.label) facts.push(["Class", classOf(nodes.label[node])]);
  if (nodes.predicted) {
    const result = RESULTS[resultOf(node)];
    facts.push(["Prediction", `${classOf(nodes.predicted[node])} (${result})`]);
  }
  for (const target of targets ? targets.lines : []) {
    const predicted = number(target.predicted()[node]);
    facts.push([target.name, `${targetWords(target.known()[node])} (predicted ${predicted})`]);
  }
  if (nodes.part) facts.push(["Split", partOf(node)]);
  facts.push(["Degree", nodes.degree[node]]);
  facts.push(["Homophily", number(nodes.homophily[node])]);
  facts.push(["Clustering", number(nodes.clustering[node])]);
  return facts;
}

function probabilityPart(node) {
  const size = classes.length;
  const chances = classes.map((name, k) => [nodes.probability[node * size + k], name]);
  chances.sort((a, b) => b[0] - a[0]);
  const bars = make("div", null, "bars");
  for (const [chance, name] of chances.slice(0, MOST_CLASSES)) {
    bars.append(...probabilityBar(chance, name));
  }
  const few = size > MOST_CLASSES ? ` (${MOST_CLASSES} of ${size})` : "";
  return [make("h4", `Probabilities${few}`), bars];
}

function probabilityBar(chance, name) {
  const title = make("b", name);
  const track = make("div");
  const bar = make("i");
  title.title = name;
  bar.style.width = `${Math.max(0, 100 * chance)}%`;
  track.append(bar);
  return [title, track, make("em", `${(100 * chance).toFixed(1)}\u00a0%`)];
}

function geometryPart(node) {
  const layer = layers[state.layer];
  const numbers = Object.entries(layer.statistics).map(([name, values]) => [
    MEANINGS[name][0],
    number(values()[node]),
  ]);
  return [
    make("h4", `Curvature and shape, layer ${layer.number}`),
    addPairs(make("dl", null, "double"), numbers),
    make("h4", `Metric, layer ${layer.number}: log g of ${layer.axes} axes`),
    ...metricPart(layer, node),
  ];
}

function metricPart(layer, node) {
  const g = layer.metric();
  if (!g) {
    const reason = "This layer's metric was left out to keep the page small; choose the last layer.";
    return [make("p", reason, "quiet")];
  }
  const own = Array.from(g.slice(node * layer.axes, (node + 1) * layer.axes));
  const usual = layer.usual();
  const apart = own.map((value, axis) => value - usual[axis]);
  const extremes = extremeAxes(own);
  const farthest = `axis ${farthestAxes(apart)}`;
  const meaning = "Above the line an axis is stretched, below it is contracted.";
  const words = `Difference of log g to the mean of all nodes. Farthest: ${farthest}.`;
  return [
    axisBars(own, `Metric of the node. ${extremes}`),
    make("p", `${extremes} ${meaning}`, "quiet"),
    make("h4", "Beside the mean of all nodes"),
    axisBars(apart, words),
    make("p", `Farthest from the mean: ${farthest}.`, "quiet"),
  ];
}

function extremeAxes(own) {
  const ranked = own.map((value, axis) => [value, axis]).sort((a, b) => b[0] - a[0]);
  const text = ([value, axis]) => `${axis} (g = ${number(Math.exp(value))})`;
  const largest = ranked.slice(0, 3).map(text);
  const smallest = ranked.slice(-3).reverse().map(text);
  return `Largest: axis ${largest.join(", ")}. Smallest: axis ${smallest.join(", ")}.`;
}

function farthestAxes(apart) {
  const ranked = apart.map((value, axis) => [Math.abs(value), axis]).sort((a, b) => b[0] - a[0]);
  return ranked.slice(0, 3).map(([, axis]) => `${axis} (${number(apart[axis])})`).join(", ");
}

function axisBars(values, words) {
  const [width, height, left] = [340, 110, 34];
  const high = Math.max(0, ...values);
  const low = Math.min(0, ...values);
  const step = (width - left) / values.length;
  const y = (value) => 6 + (height - 12) * (high - value) / (high - low || 1);
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
  values.forEach((value, axis) => {
    const bar = makeSvg("rect", {
      x: left + axis * step,
      width: Math.max(0.7, step * 0.82),
      y: Math.min(y(value), y(0)),
      height: Math.max(0.5, Math.abs(y(value) - y(0))),
      class: value >= 0 ? "up" : "down",
    });
    bar.append(makeSvg("title", {}, `axis ${axis}: ${number(value)}`));
    svg.append(bar);
  });
  svg.append(makeSvg("line", { x1: left, x2: width, y1: y(0), y2: y(0), class: "axis-line" }));
  svg.append(makeSvg("text", { x: 0, y: Math.min(height - 2, y(high) + 8) }, number(high, 2)));
  if (low < 0) svg.append(makeSvg("text", { x: 0, y: y(low) }, number(low, 2)));
  return svg;
}

function neighborPart(node) {
  const layer = layers[state.layer];
  const weight = layer && layer.weight();
  const list = neighborPlaces(node);
  if (weight) list.sort((a, b) => Math.abs(weight[b]) - Math.abs(weight[a]));
  const few = list.length > MOST_NEIGHBORS ? `${MOST_NEIGHBORS} of ` : "";
  const which = layer ? `, layer ${layer.number}` : "";
  const title = make("h4", `Neighbors (${few}${whole(list.length)})${which}`);
  if (!list.length) return [title, make("p", "This node has no neighbors.", "quiet")];
  const found = [title, neighborTable(list.slice(0, MOST_NEIGHBORS), layer)];
  if (layer) found.push(make("p", weightMeaning(layer), "quiet"));
  return found;
}

function weightMeaning(layer) {
  if (layer.attention()) return "Weight: constant weight × tau × attention.";
  return "This form has no attention; weight is the constant weight times how much the metric "
    + "scales the message.";
}

function neighborTable(list, layer) {
  const columns = layer ? messageColumns(layer) : [];
  const lines = list.map((k) => {
    const other = neighborOf[k];
    const label = nodes.label ? [classOf(nodes.label[other])] : [];
    return [nodeLink(other), ...label, ...columns.map(([, values]) => number(values[k]))];
  });
  const header = ["Node", ...(nodes.label ? ["Class"] : []), ...columns.map(([name]) => name)];
  return nameTable(header, lines, nodes.label ? [2] : []);
}

// Names and values of what is known about the messages of a layer.
function messageColumns(layer) {
  const columns = [["tau", layer.tau()], ["attention", layer.attention()], ["weight", layer.weight()]];
  return columns.filter(([, values]) => values);
}
