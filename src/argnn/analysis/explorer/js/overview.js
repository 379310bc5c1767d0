// What stands above and below the map: the sentence on top, scores, learning curves, means by layer and class.

const CURVE_NAMES = {
  loss: "Loss",
  task_loss: "Task loss",
  penalty: "Penalty of the metric",
  gradient_norm: "Gradient norm",
  val_score: "Validation score",
  val_loss: "Validation loss",
};

function showOverview() {
  const few = count < data.whole.nodes ? `${whole(count)} of ` : "";
  const sizes = [`${few}${whole(data.whole.nodes)} nodes`, `${whole(data.whole.edges)} edges`];
  if (classes.length) sizes.push(`${classes.length} classes`);
  const layered = layers.length === 1 ? "1 layer" : `${layers.length} layers`;
  sizes.push(layers.length ? `${layered} with a ${data.metric} metric` : "no metric");
  at("title").textContent = data.title;
  const score = mainScore();
  if (score && score.here !== null) sizes.unshift(scoreWords(score));
  at("headline").textContent = data.headline;
  at("lead").textContent = sizes.join(", ");
  if (data.facts) addPairs(at("facts"), data.facts);
  showComparison();
  if (data.scores) showScores();
  const notes = data.notes || [];
  at("notes").append(...notes.map((note) => make("li", note)));
  at("notes").hidden = !notes.length;
}

// The test score of the same name as the one that has chosen the epoch, else the first.
function mainScore() {
  const scores = data.scores || [];
  const judged = scores.map(({ name }) => name.replace("validation ", "test "));
  return scores.find(({ name }) => name === judged[judged.length - 1]) || scores[0];
}

function scoreWords({ name, here, plain }) {
  return `${name} ${plain ? number(here) : `${percent(here)} %`}`;
}

function showComparison() {
  at("comparison-box").hidden = !data.comparison;
  if (!data.comparison) return;
  const { caption, header, lines } = data.comparison;
  fillTable(at("comparison"), caption, header, lines, 2);
}

function showScores() {
  const header = ["Score", "this split", "mean", "± 95 %", "splits"];
  const lines = data.scores.map(({ name, here, mean, interval, n, plain }) => [
    name,
    ...[here, mean, interval].map((value) => (plain ? number(value) : percent(value))),
    n,
  ]);
  const unit = data.scores.some(({ plain }) => plain) ? "" : " in per cent";
  fillTable(at("scores"), `Scores${unit}`, header, lines);
  showClassScores();
  at("protocol").textContent = `Protocol: ${data.protocol}. ± is the ${data.interval}.`;
}

function showClassScores() {
  at("class-scores-box").hidden = !data.class_scores;
  if (!data.class_scores) return;
  const header = ["Class", "nodes", "precision", "recall", "F1", "average precision"];
  const lines = data.class_scores.map(({ name, nodes, shares }) => [
    name,
    whole(nodes),
    ...shares.map(percent),
  ]);
  fillTable(at("class-scores"), "Test scores of each class in per cent, this split", header, lines);
}

function showCurves() {
  at("curves-section").hidden = !data.curves;
  if (!data.curves) return;
  for (const [name, numbers] of Object.entries(data.curves)) {
    if (name === "epoch" || numbers.every((value) => value === null)) continue;
    at("curves").append(curveFigure(name, numbers));
  }
  const words = `The dashed line is the chosen epoch, ${data.chosen_epoch}.`;
  at("curves").append(make("p", words, "quiet"));
}

function curveFigure(name, numbers) {
  const epochs = data.curves.epoch;
  const known = numbers.map((value, k) => [epochs[k], value]).filter(([, value]) => value !== null);
  const ys = known.map(([, value]) => value);
  const ends = {
    first: Math.min(...epochs),
    last: Math.max(...epochs),
    low: Math.min(...ys),
    high: Math.max(...ys),
  };
  const words = `${CURVE_NAMES[name]}: from ${number(ys[0])} to ${number(ys[ys.length - 1])}, `
    + `lowest ${number(ends.low)}, highest ${number(ends.high)}`;
  const figure = make("figure");
  figure.append(make("figcaption", CURVE_NAMES[name]), curveDrawing(known, ends, words));
  return figure;
}

function curveDrawing(known, { first, last, low, high }, words) {
  const [width, height, left, right, bottom] = [320, 150, 42, 6, 20];
  const floor = height - bottom;
  const share = (value, from, to) => (to > from ? (value - from) / (to - from) : 0.5);
  const x = (epoch) => left + (width - left - right) * share(epoch, first, last);
  const y = (value) => 8 + (floor - 12) * share(-value, -high, -low);
  const chosen = x(data.chosen_epoch);
  const steps = known.map(([epoch, value]) => `${x(epoch).toFixed(1)} ${y(value).toFixed(1)}`);
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
  svg.append(
    makeSvg("line", { x1: left, x2: width - right, y1: floor, y2: floor, class: "axis-line" }),
    makeSvg("line", { x1: chosen, x2: chosen, y1: 6, y2: floor, class: "chosen" }),
    makeSvg("path", { class: "curve", d: `M${steps.join("L")}` }),
    makeSvg("text", { x: 0, y: 16 }, number(high)),
    makeSvg("text", { x: 0, y: floor }, number(low)),
    makeSvg("text", { x: left, y: height - 5 }, String(first)),
    makeSvg("text", { x: width - right, y: height - 5, "text-anchor": "end" }, `epoch ${last}`),
  );
  return svg;
}

function showGeometry() {
  at("geometry-section").hidden = !layers.length;
  if (!layers.length) return;
  const names = Object.keys(layers[0].statistics).filter((name) => name !== "main_variation");
  const titles = names.map((name) => MEANINGS[name][0]);
  showLayerMeans(names, titles);
  showClassMeans(names, titles);
  at("meanings").replaceChildren();
  addPairs(at("meanings"), Object.values(MEANINGS));
}

function shownOnly() {
  return count < data.whole.nodes ? " in this page" : "";
}

function showLayerMeans(names, titles) {
  const mean = (values) => number(meanWhere(values, () => true));
  const lines = layers.map((layer) => [
    layer.number,
    number(layer.nrmd),
    ...names.map((name) => mean(layer.statistics[name]())),
  ]);
  const caption = `Means over the nodes${shownOnly()} of each layer`;
  fillTable(at("layer-table"), caption, ["Layer", "NRMD", ...titles], lines);
}

function showClassMeans(names, titles) {
  at("class-table-box").hidden = !nodes.label;
  if (!nodes.label) return;
  const layer = layers[state.layer];
  const lines = classes.map((className, label) => {
    const isInside = (node) => nodes.label[node] === label;
    const size = nodes.label.filter((other) => other === label).length;
    const means = names.map((name) => number(meanWhere(layer.statistics[name](), isInside)));
    return [className, whole(size), ...means];
  });
  const caption = `Means by class, layer ${layer.number}${shownOnly()}`;
  fillTable(at("class-table"), caption, ["Class", "Nodes", ...titles], lines);
}
