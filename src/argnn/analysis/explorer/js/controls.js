// The choices above the map.

function fillControls() {
  for (const [value, text] of colorChoices()) addOption(at("color"), value, text);
  state.color = at("color").value;
  layers.forEach((layer, k) => addOption(at("layer"), k, layer.number));
  at("layer").value = String(state.layer);
  at("layer-field").hidden = !layers.length;
  addOption(at("edges"), "none", "none");
  addOption(at("edges"), "original", "original");
  if (data.rewired) addOption(at("edges"), "rewired", "rewired");
  fillFilters();
}

function colorChoices() {
  const isKnown = Boolean(nodes.label);
  const statistics = layers.length ? Object.keys(layers[0].statistics) : [];
  const choices = [
    isKnown && ["label", "class"],
    nodes.predicted && ["predicted", "prediction"],
    nodes.predicted && isKnown && ["error", "error"],
    ...statistics.map((name) => [name, MEANINGS[name][0]]),
    layers.length && ["axis", "metric axis"],
    ["degree", "degree"],
    isKnown && ["homophily", "local homophily"],
    ["clustering", "clustering"],
    nodes.part && ["part", "split"],
  ];
  return choices.filter(Boolean);
}

function fillFilters() {
  for (const id of ["class-filter", "part-filter", "result-filter"]) addOption(at(id), ANY, "all");
  if (nodes.label) {
    classes.forEach((name, k) => addOption(at("class-filter"), k, name));
    if (nodes.label.some((label) => label < 0)) addOption(at("class-filter"), -1, "no label");
  }
  PARTS.forEach((name, k) => addOption(at("part-filter"), k, name));
  for (const result of [RIGHT, WRONG]) addOption(at("result-filter"), result, RESULTS[result]);
  at("class-field").hidden = !nodes.label;
  at("part-field").hidden = !nodes.part;
  at("result-field").hidden = !nodes.predicted || !nodes.label;
}

function onChange(id, act) {
  at(id).addEventListener("change", (event) => act(event.target.value));
}

function listenControls() {
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  onChange("color", changeColor);
  onChange("layer", changeLayer);
  onChange("view", changeView);
  onChange("edges", changeEdges);
  at("axis").addEventListener("input", changeAxis);
  const filters = { "class-filter": "label", "part-filter": "part", "result-filter": "result" };
  for (const [id, name] of Object.entries(filters)) {
    onChange(id, (value) => {
      state.filter[name] = Number(value);
      refilter();
    });
  }
  at("zoom-in").addEventListener("click", () => zoom(1.4));
  at("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
  at("reset").addEventListener("click", reset);
}

function changeColor(value) {
  state.color = value;
  at("axis-field").hidden = value !== "axis";
  changeAxis();
}

function changeAxis() {
  checkAxis();
  recolor();
}

function changeLayer(value) {
  state.layer = Number(value);
  changeAxis();
  showDetail();
  showGeometry();
}

function changeView(value) {
  state.view = Number(value);
  reset();
  showStatus();
}

function changeEdges(value) {
  state.edges = value;
  painter.edgesChanged();
  showRewiring();
  draw();
}

// Keeps the axis within those of the layer, and to a layer whose metric is in the page.
function checkAxis() {
  if (!layers.length) return;
  if (state.color === "axis" && !layers[state.layer].metric()) {
    state.layer = layers.length - 1;
    at("layer").value = String(state.layer);
  }
  const last = layers[state.layer].axes - 1;
  at("axis").max = last;
  state.axis = clamp(Math.floor(Number(at("axis").value) || 0), 0, last);
}

function showRewiring() {
  const found = data.rewired;
  at("rewiring").hidden = state.edges !== "rewired" || !found;
  if (at("rewiring").hidden) return;
  const change = ([before, after]) => `${number(before)} to ${number(after)}`;
  const newEdges = rewiredEdges().isNew.reduce((sum, isNew) => sum + isNew, 0);
  const heldOut = found.held_out
    ? `; between nodes that were not trained on ${change(found.held_out)}`
    : "";
  at("rewiring").textContent = "Rewired along distances under the metric, every degree kept: "
    + `${whole(newEdges)} of ${whole(neighborOf.length / 2)} edges are new (orange). `
    + `Homophily ${change(found.homophily)}${heldOut}.`;
}
