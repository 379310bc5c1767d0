// Finding a node by its id or name, or all nodes of a class by its name.

const MOST_MATCHES = 12;

function findNodes(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const exact = [];
  const partial = [];
  for (let node = 0; node < count; node++) {
    const name = nameOf(node).toLowerCase();
    if (name === wanted) exact.push(node);
    else if (partial.length < MOST_MATCHES && name.includes(wanted)) partial.push(node);
  }
  return [...exact, ...partial].slice(0, MOST_MATCHES).map((node, k) => ({
    text: nameOf(node),
    act: () => choose(node, true),
    isExact: k < exact.length,
    isNode: true,
  }));
}

function findClasses(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted || !nodes.label) return [];
  const ranked = classes.map((name, label) => [name.toLowerCase(), label]);
  const found = ranked.filter(([name]) => name.includes(wanted));
  found.sort(([a], [b]) => (b === wanted) - (a === wanted));
  return found.map(([name, label]) => ({
    text: `class ${classes[label]}`,
    act: () => selectClass(label),
    isExact: name === wanted,
  }));
}

function selectClass(label) {
  const inside = [];
  nodes.label.forEach((other, node) => {
    if (other === label) inside.push(node);
  });
  select(inside);
}

function showMatches() {
  const text = at("search").value;
  const found = [...findClasses(text), ...findNodes(text)].slice(0, MOST_MATCHES);
  const items = found.map((match) => {
    const item = make("li");
    item.append(makeButton(match.text, match.act));
    return item;
  });
  at("matches").replaceChildren(...(items.length ? items : [make("li", "No such node or class.")]));
  at("matches").hidden = !text.trim();
  // An id that is exactly the text comes before a class.
  return found.find((match) => match.isExact && match.isNode) || found[0];
}

function listenSearch() {
  at("search").addEventListener("input", showMatches);
  at("search").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const found = showMatches();
    if (found) found.act();
  });
}
