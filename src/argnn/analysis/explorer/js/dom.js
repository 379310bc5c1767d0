// Elements of the page and words for numbers. Everything from the data goes in as text.

const at = (id) => document.getElementById(id);

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = String(text);
  if (className) element.className = className;
  return element;
}

function makeSvg(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function makeButton(text, act, className) {
  const button = make("button", text, className);
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

function addOption(select, value, text) {
  const element = make("option", text);
  element.value = value;
  select.append(element);
}

function addPairs(list, lines) {
  for (const [term, text] of lines) list.append(make("dt", term), make("dd", text));
  return list;
}

// The first `texts` columns of a table are words, the others numbers.
function tableRow(cells, tag, texts) {
  const line = make("tr");
  cells.forEach((cell, column) => {
    const element = make(tag);
    if (tag === "th") element.scope = "col";
    if (cell instanceof Node) element.append(cell);
    else element.textContent = cell;
    if (column < texts) element.classList.add("text");
    line.append(element);
  });
  return line;
}

function fillTable(table, caption, header, lines, texts = 1) {
  const head = make("thead");
  const body = make("tbody");
  head.append(tableRow(header, "th", texts));
  for (const cells of lines) body.append(tableRow(cells, "td", texts));
  table.replaceChildren(make("caption", caption), head, body);
}

function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(1);
  return value.toFixed(size >= 100 ? Math.min(digits, 1) : digits);
}

function percent(value) {
  return value === null || value === undefined ? "–" : (100 * value).toFixed(1);
}

function whole(value) {
  return value.toLocaleString("en");
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}
