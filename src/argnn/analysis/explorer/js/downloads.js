// What the page holds, as CSV files that are made here.

function csvCell(value) {
  const isNothing = value === null || value === undefined || Number.isNaN(value);
  const text = isNothing ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function rounded(value, digits = 6) {
  return Number.isNaN(value) ? "" : Number(value.toPrecision(digits));
}

function save(name, header, lines) {
  const rows = [header, ...lines].map((line) => `${line.map(csvCell).join(",")}\n`);
  const address = URL.createObjectURL(new Blob(rows, { type: "text/csv" }));
  const link = make("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  at("status").textContent = `${name} was made.`;
}

function everyNode(columns) {
  return Array.from({ length: count }, (_, node) => columns.map(([, value]) => value(node)));
}

function saveNodes() {
  const columns = nodeColumns();
  save("nodes.csv", columns.map(([name]) => name), everyNode(columns));
}

function saveSelection() {
  const columns = nodeColumns();
  const lines = [...state.selected].map((node) => columns.map(([, value]) => value(node)));
  save("selection.csv", columns.map(([name]) => name), lines);
}

function nodeColumns() {
  const columns = [["id", nameOf], ...resultColumns()];
  columns.push(["degree", (node) => nodes.degree[node]]);
  for (const name of ["homophily", "clustering"]) {
    columns.push([name, (node) => rounded(nodes[name][node])]);
  }
  for (const layer of layers) {
    for (const [name, values] of Object.entries(layer.statistics)) {
      columns.push([`${name}_layer_${layer.number}`, (node) => rounded(values()[node])]);
    }
  }
  return columns;
}

function resultColumns() {
  const columns = [];
  const labelName = (node) => (nodes.label[node] < 0 ? "" : classes[nodes.label[node]]);
  if (nodes.label) columns.push(["class", labelName]);
  if (nodes.predicted) {
    columns.push(["predicted", (node) => classes[nodes.predicted[node]]]);
    classes.forEach((name, k) => {
      const chance = (node) => rounded(nodes.probability[node * classes.length + k]);
      columns.push([`p_${name}`, chance]);
    });
  }
  for (const target of targets ? targets.lines : []) {
    columns.push([target.name, (node) => rounded(target.known()[node])]);
    columns.push([`predicted_${target.name}`, (node) => rounded(target.predicted()[node])]);
  }
  if (nodes.part) columns.push(["split", partOf]);
  return columns;
}

function saveMessages() {
  const layer = layers[state.layer];
  const columns = messageColumns(layer);
  const lines = [];
  for (let node = 0; node < count; node++) {
    for (const k of neighborPlaces(node)) {
      const numbers = columns.map(([, values]) => rounded(values[k]));
      lines.push([nameOf(neighborOf[k]), nameOf(node), ...numbers]);
    }
  }
  const header = ["source", "target", ...columns.map(([name]) => name)];
  save(`messages_layer_${layer.number}.csv`, header, lines);
}

function saveMetric() {
  const layer = layers[state.layer];
  const g = layer.metric();
  if (!g) {
    const reason = "This layer's metric is not in the page; choose the last layer.";
    at("status").textContent = reason;
    return;
  }
  const columns = [["id", nameOf]];
  for (let axis = 0; axis < layer.axes; axis++) {
    const entry = (node) => rounded(Math.exp(g[node * layer.axes + axis]), 4);
    columns.push([`g_${axis}`, entry]);
  }
  save(`metric_layer_${layer.number}.csv`, columns.map(([name]) => name), everyNode(columns));
}

function saveEdges(edges, name) {
  const lines = Array.from(edges.low, (low, k) => [nameOf(low), nameOf(edges.high[k])]);
  save(name, ["source", "target"], lines);
}

function saveCurves() {
  const names = Object.keys(data.curves);
  const lines = data.curves.epoch.map((_, k) => names.map((name) => data.curves[name][k]));
  save("curves.csv", names, lines);
}

function showDownloads() {
  const offers = [["Nodes", saveNodes], ["Edges", () => saveEdges(originalEdges(), "edges.csv")]];
  if (layers.length) {
    offers.push(["Messages of the layer", saveMessages], ["Metric of the layer", saveMetric]);
  }
  if (data.rewired) {
    offers.push(["Rewired edges", () => saveEdges(rewiredEdges(), "rewired.csv")]);
  }
  if (data.curves) offers.push(["Learning curves", saveCurves]);
  at("downloads").append(...offers.map(([name, act]) => makeButton(`${name} (CSV)`, act)));
}
