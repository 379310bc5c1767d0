// Words about the map: what the colors mean, and how many nodes are shown.

function showStatus() {
  const color = at("color").selectedOptions[0];
  const here = color.value === "feature" ? ` ${features.names[state.feature]}` : "";
  const sentences = [
    `${whole(scene.shownCount)} of ${whole(count)} nodes shown, colored by ${color.textContent}${here}.`,
    `Positions: ${data.views[state.view].method}.`,
    painter.remark(),
  ];
  at("status").textContent = sentences.filter(Boolean).join(" ");
}

function showLegend() {
  const items = scene.coloring.names ? groupItems() : fieldItems();
  at("legend").replaceChildren(...items);
}

function legendItem(color, name, tag = "span") {
  const item = make(tag);
  const dot = make("i");
  dot.style.background = color;
  item.title = name;
  item.append(dot, make("b", name));
  return item;
}

// One button for each group: a click hides it or shows it, with Shift it alone stays.
function groupItems() {
  const { names, colors } = scene.coloring;
  const used = new Set(scene.bucket);
  const places = names.map((_, k) => k).filter((k) => used.has(k));
  return places.map((k) => {
    const item = legendItem(colors[k], names[k], "button");
    item.type = "button";
    item.title = `${names[k]}: click to hide or show, Shift and click to see it alone`;
    item.setAttribute("aria-pressed", String(!state.hidden.has(k)));
    item.addEventListener("click", (event) => toggleGroup(k, places, event.shiftKey));
    return item;
  });
}

function toggleGroup(group, all, alone) {
  const others = all.filter((k) => k !== group);
  const isAlone = others.every((k) => state.hidden.has(k)) && !state.hidden.has(group);
  if (alone || (isAlone && others.length)) state.hidden = new Set(isAlone ? [] : others);
  else if (!state.hidden.delete(group)) state.hidden.add(group);
  refilter();
  const place = [...at("legend").children].indexOf(document.activeElement);
  showLegend();
  if (place >= 0) at("legend").children[place].focus();
}

function fieldItems() {
  const { title, low, high, colors, missing, isFlat, change, meaning } = scene.coloring;
  if (isFlat) return flatItems(title, low, high, change);
  const stops = colors.slice(0, STEPS).filter((_, k) => k % 6 === 0 || k === STEPS - 1);
  const bar = make("span", null, "ramp");
  bar.style.background = `linear-gradient(90deg, ${stops.join(",")})`;
  const items = [make("b", title), make("b", number(low)), bar, make("b", number(high))];
  if (missing) items.push(legendItem(GREY, `not defined (${whole(missing)})`));
  if (meaning) items.push(make("small", meaning));
  return items;
}

function flatItems(title, low, high, change) {
  const share = 100 * data.hardly;
  const words = high > low
    ? `${title}: ${number(low)} to ${number(high)}, grey because it varies by ${percent(change)} %, under ${share} %`
    : `${title}: ${number(low)} at every node`;
  return [legendItem(GREY, words)];
}
