// The panel beside the map while no node is chosen: what the model confuses, its worst mistakes,
// and the nodes whose metric is most unusual.

const MOST_LISTED = 5;
const TEST = 2;

function summaryParts() {
  const parts = [confusionPart(), frequentPart(), mistakePart(), errorPart(), unusualPart(), reliabilityPart()];
  const found = parts.flat();
  if (found.length) return found;
  return [make("h3", "No node chosen"), make("p", "Click a node or find one by its id.", "quiet")];
}

function confusionPart() {
  if (!data.confusion) return [];
  const totals = data.confusion.map((line) => line.reduce((sum, n) => sum + n, 0));
  const right = data.confusion.reduce((sum, line, k) => sum + line[k], 0);
  const total = totals.reduce((sum, n) => sum + n, 0);
  const lines = data.confusion.map((line, k) => [
    classKey(k),
    ...line.map((size, other) => confusionCell(size, totals[k], k, other)),
  ]);
  const table = make("table", null, classes.length > 7 ? "confusion dense" : "confusion");
  fillTable(table, "", ["is", ...classes.map((_, k) => classKey(k, true))], lines);
  const words = `${whole(right)} of ${whole(total)} right (${percent(right / total)} %). `
    + "Lines: the class. Columns: the prediction, in the same order.";
  return [make("h3", "Test nodes by class and prediction"), inScroll(table), make("p", words, "quiet")];
}

// Many classes have no matrix: which of them are taken for which most often.
function frequentPart() {
  if (!data.mistakes || !data.mistakes.length) return [];
  const lines = data.mistakes.map(([label, other, size]) => [classKey(label), classKey(other), whole(size)]);
  const table = make("table", null, "frequent");
  fillTable(table, "", ["is", "predicted", "nodes"], lines, 2);
  return [make("h3", "Most frequent mistakes, test nodes"), inScroll(table)];
}

// A dot in the color of the class, with its name; only the dot where there is little room.
function classKey(label, isShort = false) {
  const key = make("span", null, "key");
  const dot = make("i");
  dot.style.background = classColors[label];
  key.title = classes[label];
  key.append(dot, make("b", classes[label], isShort ? "unseen" : ""));
  return key;
}

function confusionCell(size, total, label, other) {
  const cell = make("span", size ? whole(size) : "·");
  const share = total ? size / total : 0;
  const strength = Math.round(100 * Math.min(1, share) * 0.55);
  const color = label === other ? "--bar" : "--bar-low";
  cell.className = "cell";
  cell.style.background = `color-mix(in srgb, var(${color}) ${size ? Math.max(6, strength) : 0}%, transparent)`;
  cell.title = `${classes[label]} taken for ${classes[other]}: ${whole(size)} of ${whole(total)}`;
  return cell;
}

function inScroll(table) {
  const box = make("div", null, "scroll");
  box.append(table);
  return box;
}

function confidence(node) {
  return nodes.probability[node * classes.length + nodes.predicted[node]];
}

// Test nodes, the worst first by `badness`; those without a number are left out.
function worstNodes(badness) {
  const found = [];
  for (let node = 0; node < count; node++) {
    if (nodes.part && nodes.part[node] !== TEST) continue;
    const bad = badness(node);
    if (bad > 0) found.push([bad, node]);
  }
  return found.sort((a, b) => b[0] - a[0]).slice(0, MOST_LISTED);
}

function mistakePart() {
  if (!nodes.predicted || !nodes.label) return [];
  const worst = worstNodes((node) => (resultOf(node) === WRONG ? confidence(node) : 0));
  if (!worst.length) return [];
  const lines = worst.map(([chance, node]) => [
    nodeLink(node),
    classOf(nodes.label[node]),
    classOf(nodes.predicted[node]),
    `${percent(chance)} %`,
  ]);
  return [
    make("h3", "Most confident mistakes, test nodes"),
    nameTable(["Node", "is", "predicted", "sure"], lines, [2, 3]),
  ];
}

// Of numbers the error in standard deviations, of labels the distance of the probability.
function errorPart() {
  if (!targets) return [];
  const worst = targets.lines.flatMap((target) => {
    const badness = (node) => targetError(target, node) / (targets.are_labels ? 1 : target.spread || 1);
    return worstNodes(badness).map(([bad, node]) => [bad, node, target]);
  });
  worst.sort((a, b) => b[0] - a[0]);
  if (!worst.length) return [];
  const lines = worst.slice(0, MOST_LISTED).map(([, node, target]) => [
    nodeLink(node),
    target.name,
    targetWords(target.known()[node]),
    number(target.predicted()[node]),
  ]);
  const header = ["Node", "", "is", targets.are_labels ? "probability" : "predicted"];
  return [make("h3", "Largest errors, test nodes"), nameTable(header, lines, [2])];
}

function targetError(target, node) {
  return Math.abs(target.known()[node] - target.predicted()[node]);
}

function targetWords(value) {
  if (!targets.are_labels || Number.isNaN(value)) return number(value);
  return value > 0.5 ? "yes" : "no";
}

function unusualPart() {
  const layer = layers[state.layer];
  if (!layer || !layer.unusual.length) return [];
  const most = data.confusion || targets ? MOST_LISTED : layer.unusual.length;
  const lines = layer.unusual.slice(0, most).map(([node, distance]) => {
    const label = nodes.label ? [classOf(nodes.label[node])] : [];
    return [nodeLink(node), ...label, whole(nodes.degree[node]), number(distance, 2)];
  });
  const header = ["Node", ...(nodes.label ? ["Class"] : []), "degree", "distance"];
  const words = "Root mean square over the axes of log g, less its mean over the nodes.";
  return [
    make("h3", `Most unusual metric, layer ${layer.number}`),
    nameTable(header, lines, nodes.label ? [2] : []),
    make("p", words, "quiet"),
  ];
}

function nodeLink(node) {
  const button = makeButton(nameOf(node), () => choose(node, true), "link");
  button.title = nameOf(node);
  return button;
}

// A table of nodes; the columns of `names` hold names, which are cut where they are long.
function nameTable(header, lines, names) {
  const table = make("table");
  fillTable(table, "", header, lines, 1 + names.length);
  for (const column of names) {
    for (const cell of table.querySelectorAll(`td:nth-child(${column})`)) {
      cell.classList.add("name");
      cell.title = cell.textContent;
    }
  }
  return inScroll(table);
}
