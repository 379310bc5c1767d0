// Words about the map: what the colors mean, and how many nodes are shown.

function showStatus() {
  const color = at("color").selectedOptions[0];
  const sentences = [
    `${whole(scene.shownCount)} of ${whole(count)} nodes shown, colored by ${color.textContent}.`,
    `Positions: ${data.views[state.view].method}.`,
    painter.remark(),
  ];
  at("status").textContent = sentences.filter(Boolean).join(" ");
}

function showLegend() {
  const items = scene.coloring.names ? groupItems() : fieldItems();
  at("legend").replaceChildren(...items);
}

function legendItem(color, name) {
  const item = make("span");
  const dot = make("i");
  dot.style.background = color;
  item.title = name;
  item.append(dot, make("b", name));
  return item;
}

function groupItems() {
  const { names, colors } = scene.coloring;
  const used = new Set(scene.bucket);
  return names.flatMap((name, k) => (used.has(k) ? [legendItem(colors[k], name)] : []));
}

function fieldItems() {
  const { title, low, high, colors, missing } = scene.coloring;
  const stops = colors.slice(0, STEPS).filter((_, k) => k % 6 === 0 || k === STEPS - 1);
  const bar = make("span", null, "ramp");
  bar.style.background = `linear-gradient(90deg, ${stops.join(",")})`;
  const items = [make("b", title), make("b", number(low)), bar, make("b", number(high))];
  return missing ? [...items, legendItem(GREY, `not defined (${whole(missing)})`)] : items;
}
