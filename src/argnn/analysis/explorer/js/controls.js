// The choices above the map.

function fillControls() {
  for (const [group, choices] of Object.entries(colorChoices())) addGroup(at("color"), group, choices);
  if (data.start) at("color").value = data.start[1];
  state.color = at("color").value;
  if (features) features.names.forEach((name, k) => addOption(at("feature"), k, name));
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
  return {
    "Result": [
      isKnown && ["label", "class"],
      nodes.predicted && ["predicted", "prediction"],
      nodes.predicted && isKnown && ["error", "error"],
      nodes.predicted && ["confidence", "confidence"],
      ...targetChoices(),
    ],
    "Metric": [
      ...statistics.map((name) => [name, MEANINGS[name][0]]),
      layers.length && ["axis", "metric axis"],
    ],
    "Graph": [
      ["degree", "degree"],
      isKnown && ["homophily", "local homophily"],
      ["clustering", "clustering"],
      nodes.part && ["part", "split"],
      features && ["feature", "input feature"],
    ],
  };
}

function targetChoices() {
  const lines = targets ? targets.lines : [];
  return lines.flatMap((target, place) => ["known", "predicted", "off"].map(
    (what) => [`${what} ${place}`, targetTitle(what, target)],
  ));
}

function addGroup(select, name, choices) {
  const group = make("optgroup");
  group.label = name;
  for (const [value, text] of choices.filter(Boolean)) addOption(group, value, text);
  if (group.children.length) select.append(group);
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
  onChange("feature", changeFeature);
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
  at("lasso").addEventListener("click", () => setLasso(!lasso.isOn));
}

function changeColor(value) {
  state.color = value;
  at("axis-field").hidden = value !== "axis";
  at("feature-field").hidden = value !== "feature";
  proposeAxis();
  changeAxis();
}

function changeFeature(value) {
  state.feature = Number(value);
  recolor();
}

// The axis that varies most in this layer.
function proposeAxis() {
  if (layers.length) at("axis").value = String(layers[state.layer].bestAxis);
}

function changeAxis() {
  checkAxis();
  recolor();
}

function changeLayer(value) {
  state.layer = Number(value);
  proposeAxis();
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
    proposeAxis();
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
