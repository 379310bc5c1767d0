// Some nodes, chosen together: by a lasso, by their class, or all that pass the filters.

function select(list) {
  state.selected = list && list.length ? new Set(list) : null;
  state.chosen = -1;
  refilter();
  showDetail();
  draw();
  at("announce").textContent = state.selected ? `${whole(state.selected.size)} nodes selected` : "";
}

function selectShown() {
  select(Array.from({ length: count }, (_, node) => node).filter((node) => scene.shown[node]));
}

function selectInside(outline) {
  if (outline.length < 3) return;
  const { x, y } = projectAll();
  const inside = [];
  for (let node = 0; node < count; node++) {
    if (scene.shown[node] && isInside(outline, x[node], y[node])) inside.push(node);
  }
  if (inside.length) select(inside);
  else at("status").textContent = "No node that is shown lies inside.";
}

// Whether a line from the point to the right crosses the outline an odd number of times.
function isInside(outline, x, y) {
  let odd = false;
  outline.forEach(([ax, ay], k) => {
    const [bx, by] = outline[(k + 1) % outline.length];
    if (ay > y !== by > y && x < (bx - ax) * (y - ay) / (by - ay) + ax) odd = !odd;
  });
  return odd;
}

function selectionPart() {
  const chosen = state.selected;
  const has = (node) => chosen.has(node);
  const buttons = make("p", null, "downloads");
  buttons.append(
    makeButton("Save (CSV)", saveSelection),
    makeButton("Let go", () => select(null)),
  );
  const table = make("table");
  fillTable(table, "", ["Mean", "selected", "all"], comparedMeans(has));
  const parts = [make("h3", `${whole(chosen.size)} nodes selected`), buttons, inScroll(table)];
  if (nodes.label) parts.push(...classShares(has));
  return parts;
}

function comparedMeans(has) {
  const columns = [["degree", nodes.degree], ["clustering", nodes.clustering]];
  if (nodes.label) columns.push(["local homophily", nodes.homophily]);
  const layer = layers[state.layer];
  for (const name of layer ? Object.keys(layer.statistics) : []) {
    columns.push([`${MEANINGS[name][0]}, layer ${layer.number}`, layer.statistics[name]()]);
  }
  for (const target of targets ? targets.lines : []) {
    columns.push([target.name, target.known()], [`${target.name}, predicted`, target.predicted()]);
  }
  // The mean of what is centred is not exactly zero in rounded numbers.
  const mean = (values, keep) => {
    const found = meanWhere(values, keep);
    return number(Math.abs(found) < 1e-5 ? 0 : found);
  };
  const means = columns.map(([name, values]) => [name, mean(values, has), mean(values, () => true)]);
  return [...accuracyLine(has), ...means];
}

// Share of right predictions among the test nodes.
function accuracyLine(has) {
  if (!nodes.predicted || !nodes.label || !nodes.part) return [];
  const right = Float32Array.from(nodes.label, (_, node) => {
    const result = nodes.part[node] === TEST ? resultOf(node) : UNKNOWN;
    return result === UNKNOWN ? NaN : Number(result === RIGHT);
  });
  const share = (keep) => {
    const found = meanWhere(right, keep);
    return Number.isNaN(found) ? "–" : `${percent(found)} %`;
  };
  return [["test nodes right", share(has), share(() => true)]];
}

function classShares(has) {
  const sizes = new Map();
  nodes.label.forEach((label, node) => {
    if (has(node)) sizes.set(label, (sizes.get(label) || 0) + 1);
  });
  const ranked = [...sizes].sort((a, b) => b[1] - a[1]).slice(0, MOST_CLASSES);
  const bars = make("div", null, "bars");
  for (const [label, size] of ranked) {
    bars.append(...probabilityBar(size / state.selected.size, classOf(label)));
  }
  const few = sizes.size > MOST_CLASSES ? ` (${MOST_CLASSES} of ${sizes.size})` : "";
  return [make("h4", `Classes${few}`), bars];
}
