// Finding a node by its id or name.

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
  return [...exact, ...partial].slice(0, MOST_MATCHES);
}

function showMatches() {
  const text = at("search").value;
  const found = findNodes(text);
  const items = found.map((node) => {
    const item = make("li");
    item.append(makeButton(nameOf(node), () => choose(node, true)));
    return item;
  });
  at("matches").replaceChildren(...(items.length ? items : [make("li", "No such node.")]));
  at("matches").hidden = !text.trim();
  return found;
}

function listenSearch() {
  at("search").addEventListener("input", showMatches);
  at("search").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const found = showMatches();
    if (found.length) choose(found[0], true);
  });
}
