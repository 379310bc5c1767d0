
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const count = data.count;

  // ---- small helpers: everything from the data goes in as text ----------------------------------

  function make(tag, text, className) {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = String(text);
    if (className) element.className = className;
    return element;
  }
  function drawn(tag, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }
  function option(select, value, text) {
    const element = make("option", text);
    element.value = value;
    select.append(element);
  }
  function row(cells, tag, texts = 1) {
    const line = make("tr");
    cells.forEach((cell, place) => {
      const element = make(tag || "td");
      if (tag === "th") element.scope = "col";
      if (cell instanceof Node) element.append(cell); else element.textContent = cell;
      if (place < texts) element.classList.add("text");
      line.append(element);
    });
    return line;
  }
  function filled(table, caption, header, lines, texts = 1) {
    table.replaceChildren(make("caption", caption));
    const head = make("thead"), body = make("tbody");
    head.append(row(header, "th", texts));
    lines.forEach((cells) => body.append(row(cells, "td", texts)));
    table.append(head, body);
  }
  function number(value, digits = 3) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(1);
    return value.toFixed(size >= 100 ? Math.min(digits, 1) : digits);
  }
  const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(1));
  const whole = (value) => value.toLocaleString("en");

  // ---- arrays -----------------------------------------------------------------------------------

  const KINDS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array };
  function codes(packed) {
    const text = atob(packed.bytes), raw = new Uint8Array(text.length);
    for (let k = 0; k < raw.length; k++) raw[k] = text.charCodeAt(k);
    return new KINDS[packed.type](raw.buffer);
  }
  function values(packed) {
    if (!packed) return null;
    const from = codes(packed);
    if ("shift" in packed) return Int32Array.from(from, (code) => code + packed.shift);
    if (Array.isArray(packed.low)) {
      const { low, step } = packed, columns = low.length;
      return Float32Array.from(from, (code, k) => low[k % columns] + step[k % columns] * code);
    }
    const nothing = packed.type === "u8" ? 255 : 65535;
    return Float32Array.from(from, (code) => (code === nothing ? NaN : packed.low + packed.step * code));
  }
  function later(make) {
    let found;
    return () => (found === undefined ? (found = make()) : found);
  }

  const nodes = {};
  for (const [name, packed] of Object.entries(data.nodes)) nodes[name] = values(packed);
  const classes = data.classes;
  const source = values(data.neighbors.source);
  const start = new Uint32Array(count + 1);
  values(data.neighbors.count).forEach((n, node) => { start[node + 1] = start[node] + n; });
  const layers = data.layers.map((layer) => ({
    number: layer.number, axes: layer.axes, nrmd: layer.nrmd,
    statistics: Object.fromEntries(Object.entries(layer.statistics).map(([n, p]) => [n, later(() => values(p))])),
    metric: later(() => layer.log_metric && values(layer.log_metric)),
    usual: later(() => axisMeans(values(layer.log_metric), layer.axes)),
    tau: later(() => values(layer.tau)), attention: later(() => values(layer.attention)),
    weight: later(() => values(layer.weight)),
  }));
  function axisMeans(metric, axes) {
    const means = new Float64Array(axes);
    metric.forEach((v, k) => { means[k % axes] += v / count; });
    return means;
  }
  const nameOf = (node) => (data.ids ? data.ids[node] : String(node));
  const classOf = (label) => (label === undefined || label < 0 ? "no label" : classes[label]);
  const PARTS = ["training", "validation", "test"];
  const partOf = (node) => (nodes.part && nodes.part[node] >= 0 ? PARTS[nodes.part[node]] : "none");
  function resultOf(node) {
    if (!nodes.predicted || !nodes.label || nodes.label[node] < 0) return 2;
    return nodes.predicted[node] === nodes.label[node] ? 0 : 1;
  }

  function edgeList() {
    const low = [], high = [];
    for (let node = 0; node < count; node++) {
      for (let k = start[node]; k < start[node + 1]; k++) {
        if (source[k] < node) { low.push(source[k]); high.push(node); }
      }
    }
    return { low, high };
  }
  const original = later(edgeList);
  const rewired = later(() => {
    const known = new Set(), before = original();
    before.low.forEach((a, k) => known.add(a * count + before.high[k]));
    const low = values(data.rewired.low), high = values(data.rewired.high);
    return { low, high, isNew: Uint8Array.from(low, (a, k) => (known.has(a * count + high[k]) ? 0 : 1)) };
  });

  // ---- what can be looked at --------------------------------------------------------------------

  const MEANINGS = {
    kappa: ["curvature κ", "mean over the axes of |log g|; 0 is flat"],
    anisotropy: ["anisotropy", "log of the largest over the smallest entry of g"],
    effective_rank: ["effective rank", "how many axes carry the metric"],
    log_volume: ["log volume", "half the log-determinant; negative where space is contracted"],
    main_variation: ["main variation", "first principal component of log g over the nodes"],
    ricci_norm: ["Ricci norm", "length of the discrete Ricci curvature"],
    dispersion: ["dispersion", "mean relative difference of the metric to the neighbors'"],
    inverse_metric: ["mean 1/g", "the paper's principal curvatures, literally; 1 is flat"],
  };
  const state = {
    color: "", axis: 0, layer: layers.length - 1, view: 0, edges: "none",
    filter: { label: -2, part: -2, result: -1 }, chosen: -1,
    scale: 1, x: 0, y: 0, yaw: 0.6, pitch: 0.35,
  };

  // Okabe and Ito's palette, then lighter and darker kin for more classes.
  const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#7A5195",
    "#8C6D31", "#2F4B7C", "#A05D56", "#66A61E"];
  const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  // Dark purple would not be seen on a dark page.
  const DARK_STOPS = [[150, 90, 190], [92, 120, 190], ...STOPS.slice(2)];
  const STEPS = 48;
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  function ramp(share) {
    const stops = isDark.matches ? DARK_STOPS : STOPS;
    const place = share * (STOPS.length - 1), low = Math.min(Math.floor(place), stops.length - 2), part = place - low;
    return `rgb(${stops[low].map((c, k) => Math.round(c + part * (stops[low + 1][k] - c))).join(",")})`;
  }
  const RESULTS = ["right", "wrong", "no label"];
  const GREY = "#8a949a";

  function groups(of, names, colors) { return { of, names, colors }; }
  const classColors = classes.map((_, k) => PALETTE[k % PALETTE.length]);
  function coloring() {
    const layer = layers[state.layer];
    switch (state.color) {
      case "label": return groups((n) => (nodes.label[n] < 0 ? classes.length : nodes.label[n]), [...classes, "no label"], [...classColors, GREY]);
      case "predicted": return groups((n) => nodes.predicted[n], classes, classColors);
      case "error": return groups(resultOf, RESULTS, ["#56B4E9", "#D55E00", GREY]);
      case "part": return groups((n) => (nodes.part[n] < 0 ? 3 : nodes.part[n]), [...PARTS, "none"], ["#0072B2", "#E69F00", "#009E73", GREY]);
      case "degree": return field(nodes.degree, "degree");
      case "homophily": return field(nodes.homophily, "local homophily");
      case "clustering": return field(nodes.clustering, "clustering");
      case "axis": {
        const g = layer.metric();
        return field(Float32Array.from({ length: count }, (_, n) => g[n * layer.axes + state.axis]), `log g of axis ${state.axis}`);
      }
      case "plain": return groups(() => 0, ["node"], [PALETTE[0]]);
      default: return field(layer.statistics[state.color](), MEANINGS[state.color][0]);
    }
  }
  function field(numbers, title) {
    const known = Float64Array.from(numbers).filter((v) => !Number.isNaN(v)).sort();
    const low = known.length ? known[Math.floor(0.02 * (known.length - 1))] : 0;
    const high = known.length ? known[Math.ceil(0.98 * (known.length - 1))] : 0;
    const width = high - low;
    const of = (n) => {
      const value = numbers[n];
      if (Number.isNaN(value)) return STEPS;
      return width > 0 ? Math.max(0, Math.min(STEPS - 1, Math.floor((value - low) / width * STEPS))) : 0;
    };
    const colors = Array.from({ length: STEPS }, (_, k) => ramp(k / (STEPS - 1)));
    return { of, colors: [...colors, GREY], title, low, high, missing: count - known.length };
  }

  // ---- map --------------------------------------------------------------------------------------

  const canvas = at("map"), pen = canvas.getContext("2d");
  let width = 0, height = 0, ratio = 1, theme = {}, painted, bucket = new Uint16Array(count);
  let sprites = [], shown = new Uint8Array(count), shownCount = 0, hurry = false, waiting = 0, settle = 0;
  const places = data.views.map((view, k) => later(() => centred(values(view.points), k + 2)));
  const screenX = new Float32Array(count), screenY = new Float32Array(count), depth = new Float32Array(count);
  // A fixed mixed order: no class always lies on top of another.
  const mixed = new Uint32Array(count).map((_, k) => k);
  for (let k = count - 1, seed = 7; k > 0; k--) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    const other = seed % (k + 1);
    [mixed[k], mixed[other]] = [mixed[other], mixed[k]];
  }
  let order = mixed;

  function centred(points, dimensions) {
    const low = Array(dimensions).fill(Infinity), high = Array(dimensions).fill(-Infinity);
    points.forEach((v, k) => {
      const d = k % dimensions;
      if (v < low[d]) low[d] = v;
      if (v > high[d]) high[d] = v;
    });
    const half = Math.max(...low.map((l, d) => (high[d] - l) / 2)) || 1;
    const found = points.map((v, k) => (v - (low[k % dimensions] + high[k % dimensions]) / 2) / half);
    return { points: found, wide: (high[0] - low[0]) / 2 / half, tall: (high[1] - low[1]) / 2 / half };
  }
  function readTheme() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["panel", "edge", "new-edge", "faint", "ring", "ink", "bar"]) theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
  function resize() {
    const box = canvas.getBoundingClientRect();
    ratio = Math.min(window.devicePixelRatio || 1, 2);
    width = box.width; height = box.height;
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    draw();
  }
  const radius = () => Math.max(1.6, Math.min(5, 70 / Math.sqrt(count))) * Math.min(2, Math.max(1, Math.sqrt(state.scale)));
  function sprite(color, r) {
    const size = Math.ceil((r + 1) * 2 * ratio), image = document.createElement("canvas");
    image.width = image.height = size;
    const p = image.getContext("2d");
    p.fillStyle = color;
    p.beginPath(); p.arc(size / 2, size / 2, r * ratio, 0, 2 * Math.PI); p.fill();
    return image;
  }
  function place() {
    const { points, wide, tall } = places[state.view](), flat = state.view === 0;
    const room = flat ? Math.min(width / Math.max(wide, 0.01), height / Math.max(tall, 0.01)) : Math.min(width, height);
    const unit = 0.46 * Math.min(room, 4 * Math.min(width, height)) * state.scale;
    const cx = width / 2 + state.x, cy = height / 2 + state.y;
    if (flat) {
      for (let n = 0; n < count; n++) { screenX[n] = cx + unit * points[2 * n]; screenY[n] = cy - unit * points[2 * n + 1]; }
      order = mixed;
      return;
    }
    const cosY = Math.cos(state.yaw), sinY = Math.sin(state.yaw), cosP = Math.cos(state.pitch), sinP = Math.sin(state.pitch);
    for (let n = 0; n < count; n++) {
      const x = points[3 * n], y = points[3 * n + 1], z = points[3 * n + 2];
      const side = cosY * x + sinY * z, back = -sinY * x + cosY * z;
      const up = cosP * y - sinP * back, far = sinP * y + cosP * back, near = 2.8 / (2.8 + far);
      screenX[n] = cx + unit * 0.85 * side * near; screenY[n] = cy - unit * 0.85 * up * near; depth[n] = far;
    }
    order = Uint32Array.from(mixed).sort((a, b) => depth[b] - depth[a]);
  }
  function draw() {
    if (!waiting) waiting = requestAnimationFrame(paint);
  }
  function moved() {
    hurry = true; draw();
    clearTimeout(settle);
    settle = setTimeout(() => { hurry = false; draw(); }, 160);
  }
  function paint() {
    waiting = 0;
    if (!width) return;
    place();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    paintEdges();
    const r = radius(), faint = sprite(theme.faint, Math.max(1.2, r * 0.6));
    sprites = [];
    for (const n of order) if (!shown[n]) stamp(faint, n);
    for (const n of order) {
      if (!shown[n]) continue;
      const b = bucket[n];
      stamp(sprites[b] || (sprites[b] = sprite(painted.colors[b], r)), n);
    }
    if (state.chosen >= 0) paintChosen(r);
  }
  function stamp(image, n) {
    const x = screenX[n], y = screenY[n];
    if (x < -9 || y < -9 || x > width + 9 || y > height + 9) return;
    const size = image.width / ratio;
    pen.drawImage(image, x - size / 2, y - size / 2, size, size);
  }
  function paintEdges() {
    if (state.edges === "none") return;
    const list = state.edges === "original" ? original() : rewired(), total = list.low.length;
    const step = hurry ? Math.max(1, Math.ceil(total / 6000)) : 1;
    const strength = Math.max(0.025, Math.min(0.32, 11 / Math.sqrt(total + 1)));
    const strokes = state.edges === "original" ? [[null, theme.edge]] : [[0, theme.edge], [1, theme["new-edge"]]];
    pen.lineWidth = 0.8;
    for (const [kind, color] of strokes) {
      pen.strokeStyle = color; pen.globalAlpha = strength; pen.beginPath();
      for (let k = 0; k < total; k += step) {
        if (kind !== null && list.isNew[k] !== kind) continue;
        const a = list.low[k], b = list.high[k];
        if (!shown[a] || !shown[b]) continue;
        pen.moveTo(screenX[a], screenY[a]); pen.lineTo(screenX[b], screenY[b]);
      }
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }
  function paintChosen(r) {
    const n = state.chosen, x = screenX[n], y = screenY[n];
    pen.strokeStyle = theme.ink; pen.lineWidth = 1.1; pen.globalAlpha = Math.min(0.7, 4 / Math.sqrt(start[n + 1] - start[n] + 1)); pen.beginPath();
    for (let k = start[n]; k < start[n + 1]; k++) { pen.moveTo(x, y); pen.lineTo(screenX[source[k]], screenY[source[k]]); }
    pen.stroke(); pen.globalAlpha = 1;
    for (let k = start[n]; k < start[n + 1]; k++) {
      const j = source[k], b = bucket[j];
      stamp(sprites[b] || (sprites[b] = sprite(painted.colors[b], r)), j);
    }
    stamp(sprites[bucket[n]] || sprite(painted.colors[bucket[n]], r), n);
    pen.strokeStyle = theme.ring; pen.lineWidth = 2.2; pen.beginPath(); pen.arc(x, y, r + 4, 0, 2 * Math.PI); pen.stroke();
  }
  function nearest(x, y, reach = 14) {
    let best = -1, least = reach * reach;
    for (let n = 0; n < count; n++) {
      if (!shown[n]) continue;
      const dx = screenX[n] - x, dy = screenY[n] - y, d = dx * dx + dy * dy;
      if (d < least) { least = d; best = n; }
    }
    return best;
  }
  function zoom(factor, x = width / 2, y = height / 2) {
    const next = Math.max(0.4, Math.min(80, state.scale * factor)), real = next / state.scale;
    state.x = (x - width / 2) * (1 - real) + state.x * real;
    state.y = (y - height / 2) * (1 - real) + state.y * real;
    state.scale = next;
    moved();
  }
  function reset() { Object.assign(state, { scale: 1, x: 0, y: 0, yaw: 0.6, pitch: 0.35 }); draw(); }

  // ---- colors, filters, legend ------------------------------------------------------------------

  function recolor() {
    painted = coloring();
    for (let n = 0; n < count; n++) bucket[n] = painted.of(n);
    legend(); status(); draw();
  }
  function refilter() {
    const { label, part, result } = state.filter;
    shownCount = 0;
    for (let n = 0; n < count; n++) {
      const fits = (label === -2 || (nodes.label ? nodes.label[n] : -1) === label)
        && (part === -2 || (nodes.part ? nodes.part[n] : -1) === part) && (result === -1 || resultOf(n) === result);
      shown[n] = fits ? 1 : 0;
      shownCount += shown[n];
    }
    status(); draw();
  }
  function status() {
    const select = at("color"), name = select.selectedOptions[0] ? select.selectedOptions[0].textContent : "";
    at("status").textContent = `${whole(shownCount)} of ${whole(count)} nodes shown, colored by ${name}. `
      + `Positions: ${data.views[state.view].method}.`;
  }
  function legend() {
    const box = at("legend");
    box.replaceChildren();
    if (painted.names) {
      const used = new Set(bucket);
      painted.names.forEach((name, k) => {
        if (!used.has(k)) return;
        const item = make("span"), dot = make("i");
        dot.style.background = painted.colors[k];
        item.append(dot, make("b", name)); item.title = name;
        box.append(item);
      });
      return;
    }
    const bar = make("span", null, "ramp");
    bar.style.background = `linear-gradient(90deg, ${painted.colors.slice(0, STEPS).filter((_, k) => k % 6 === 0 || k === STEPS - 1).join(",")})`;
    box.append(make("b", painted.title), make("b", number(painted.low)), bar, make("b", number(painted.high)));
    if (painted.missing) {
      const item = make("span"), dot = make("i");
      dot.style.background = GREY;
      item.append(dot, make("b", `not defined (${whole(painted.missing)})`));
      box.append(item);
    }
  }

  // ---- one node ---------------------------------------------------------------------------------

  function pairs(list, lines) {
    for (const [term, text] of lines) list.append(make("dt", term), make("dd", text));
    return list;
  }
  function choose(node, center) {
    state.chosen = node;
    canvas.dataset.chosen = String(node);
    if (center && node >= 0) {
      place();
      const off = screenX[node] < 20 || screenX[node] > width - 20 || screenY[node] < 20 || screenY[node] > height - 20;
      if (off) { state.x += width / 2 - screenX[node]; state.y += height / 2 - screenY[node]; }
    }
    detail(); draw();
  }
  function detail() {
    const box = at("detail"), node = state.chosen;
    if (node < 0) {
      box.replaceChildren(make("h3", "No node chosen"), make("p", "Click a node or find one by its id.", "quiet"));
      return;
    }
    const facts = [];
    if (nodes.label) facts.push(["Class", classOf(nodes.label[node])]);
    if (nodes.predicted) facts.push(["Prediction", `${classOf(nodes.predicted[node])} (${RESULTS[resultOf(node)]})`]);
    if (nodes.part) facts.push(["Split", partOf(node)]);
    facts.push(["Degree", nodes.degree[node]], ["Homophily", number(nodes.homophily[node])], ["Clustering", number(nodes.clustering[node])]);
    box.replaceChildren(make("h3", `Node ${nameOf(node)}`), pairs(make("dl"), facts));
    if (nodes.predicted) box.append(...probabilities(node));
    if (layers.length) box.append(...geometry(node));
    box.append(...neighbors(node));
    box.scrollTop = 0;
    at("announce").textContent = [`Node ${nameOf(node)} chosen`, ...facts.slice(0, 3).map(([name, text]) => `${name}: ${text}`)].join(", ");
  }
  function probabilities(node) {
    const size = classes.length, chances = Array.from({ length: size }, (_, k) => [nodes.probability[node * size + k], k]);
    chances.sort((a, b) => b[0] - a[0]);
    const bars = make("div", null, "bars");
    for (const [chance, k] of chances.slice(0, 8)) {
      const name = make("b", classes[k]), bar = make("i"), track = make("div");
      name.title = classes[k]; bar.style.width = `${Math.max(0, 100 * chance)}%`;
      track.append(bar);
      bars.append(name, track, make("em", `${(100 * chance).toFixed(1)}\u00a0%`));
    }
    const title = size > 8 ? `Probabilities (8 of ${size})` : "Probabilities";
    return [make("h4", title), bars];
  }
  function geometry(node) {
    const layer = layers[state.layer], found = [];
    found.push(make("h4", `Curvature and shape, layer ${layer.number}`));
    found.push(pairs(make("dl", null, "double"), Object.entries(layer.statistics).map(([name, get]) => [MEANINGS[name][0], number(get()[node])])));
    found.push(make("h4", `Metric, layer ${layer.number}: log g of ${layer.axes} axes`));
    const g = layer.metric();
    if (!g) return [...found, make("p", "This layer's metric was left out to keep the page small; choose the last layer.", "quiet")];
    const own = Array.from(g.slice(node * layer.axes, (node + 1) * layer.axes));
    const ranked = own.map((v, k) => [v, k]).sort((a, b) => b[0] - a[0]);
    const text = (list) => list.map(([v, k]) => `${k} (g = ${number(Math.exp(v))})`).join(", ");
    const words = `Largest: axis ${text(ranked.slice(0, 3))}. Smallest: axis ${text(ranked.slice(-3).reverse())}.`;
    const usual = layer.usual(), apart = own.map((v, k) => v - usual[k]);
    const farthest = apart.map((v, k) => [Math.abs(v), k]).sort((a, b) => b[0] - a[0]).slice(0, 3).map(([, k]) => `${k} (${number(apart[k])})`).join(", ");
    return [...found, bars(own, `Metric of the node. ${words}`), make("p", `${words} Above the line an axis is stretched, below it is contracted.`, "quiet"),
      make("h4", "Beside the mean of all nodes"), bars(apart, `Difference of log g to the mean of all nodes. Farthest: axis ${farthest}.`),
      make("p", `Farthest from the mean: axis ${farthest}.`, "quiet")];
  }
  function bars(own, words) {
    const w = 340, h = 110, high = Math.max(0, ...own), low = Math.min(0, ...own), span = high - low || 1;
    const svg = drawn("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": words });
    const left = 34, step = (w - left) / own.length, y = (v) => 6 + (h - 12) * (high - v) / span;
    own.forEach((v, k) => {
      const bar = drawn("rect", {
        x: left + k * step, width: Math.max(0.7, step * 0.82), y: Math.min(y(v), y(0)), height: Math.max(0.5, Math.abs(y(v) - y(0))),
        class: v >= 0 ? "up" : "down",
      });
      bar.append(drawn("title", {}, `axis ${k}: ${number(v)}`));
      svg.append(bar);
    });
    svg.append(drawn("line", { x1: left, x2: w, y1: y(0), y2: y(0), class: "axis-line" }));
    svg.append(drawn("text", { x: 0, y: Math.min(h - 2, y(high) + 8) }, number(high, 2)));
    if (low < 0) svg.append(drawn("text", { x: 0, y: y(low) }, number(low, 2)));
    return svg;
  }
  function neighbors(node) {
    const layer = layers[state.layer], weight = layer && layer.weight(), list = [];
    for (let k = start[node]; k < start[node + 1]; k++) list.push(k);
    if (weight) list.sort((a, b) => Math.abs(weight[b]) - Math.abs(weight[a]));
    const title = make("h4", `Neighbors (${list.length > 40 ? `40 of ${whole(list.length)}` : list.length})${layer ? `, layer ${layer.number}` : ""}`);
    if (!list.length) return [title, make("p", "This node has no neighbors.", "quiet")];
    const attention = layer && layer.attention(), header = ["Node", "Class"];
    if (layer) header.push("tau", ...(attention ? ["attention"] : []), "weight");
    const lines = list.slice(0, 40).map((k) => {
      const j = source[k], button = make("button", nameOf(j), "link");
      button.type = "button"; button.title = nameOf(j);
      button.addEventListener("click", () => choose(j, true));
      const cells = [button, nodes.label ? classOf(nodes.label[j]) : "–"];
      if (layer) cells.push(number(layer.tau()[k]), ...(attention ? [number(attention[k])] : []), number(weight[k]));
      return cells;
    });
    const table = make("table"), scroll = make("div", null, "scroll");
    filled(table, "", header, lines, 2);
    table.querySelectorAll("td:nth-child(2)").forEach((cell) => { cell.classList.add("name"); cell.title = cell.textContent; });
    scroll.append(table);
    const found = [title, scroll];
    if (layer) {
      found.push(make("p", attention ? "Weight: constant weight × tau × attention."
        : "This form has no attention; weight is the constant weight times how much the metric scales the message.", "quiet"));
    }
    return found;
  }

  // ---- search -----------------------------------------------------------------------------------

  function find(text) {
    const wanted = text.trim().toLowerCase(), found = [];
    if (!wanted) return found;
    for (let n = 0; n < count; n++) if (nameOf(n).toLowerCase() === wanted) found.push(n);
    for (let n = 0; n < count && found.length < 12; n++) {
      const name = nameOf(n).toLowerCase();
      if (name !== wanted && name.includes(wanted)) found.push(n);
    }
    return found.slice(0, 12);
  }
  function offer() {
    const text = at("search").value, found = find(text), list = at("matches");
    list.replaceChildren();
    list.hidden = !text.trim();
    if (!found.length) list.append(make("li", "No such node."));
    for (const n of found) {
      const item = make("li"), button = make("button", nameOf(n));
      button.type = "button";
      button.addEventListener("click", () => choose(n, true));
      item.append(button); list.append(item);
    }
    return found;
  }

  // ---- curves and tables ------------------------------------------------------------------------

  const CURVES = {
    loss: "Loss", task_loss: "Task loss", penalty: "Penalty of the metric", gradient_norm: "Gradient norm",
    val_score: "Validation score", val_loss: "Validation loss",
  };
  function curve(name, numbers) {
    const w = 320, h = 150, left = 42, bottom = 20, epochs = data.curves.epoch;
    const known = numbers.map((v, k) => [epochs[k], v]).filter((p) => p[1] !== null);
    const figure = make("figure"), xs = known.map((p) => p[0]), ys = known.map((p) => p[1]);
    const low = Math.min(...ys), high = Math.max(...ys), first = Math.min(...epochs), last = Math.max(...epochs);
    const x = (v) => left + (w - left - 6) * (last > first ? (v - first) / (last - first) : 0.5);
    const y = (v) => 8 + (h - bottom - 12) * (high > low ? (high - v) / (high - low) : 0.5);
    const words = `${CURVES[name]}: from ${number(ys[0])} to ${number(ys[ys.length - 1])}, lowest ${number(low)}, highest ${number(high)}`;
    const svg = drawn("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": words });
    svg.append(drawn("line", { x1: left, x2: w - 6, y1: h - bottom, y2: h - bottom, class: "axis-line" }));
    svg.append(drawn("line", { x1: x(data.chosen_epoch), x2: x(data.chosen_epoch), y1: 6, y2: h - bottom, class: "chosen" }));
    svg.append(drawn("path", { class: "curve", d: xs.map((v, k) => `${k ? "L" : "M"}${x(v).toFixed(1)} ${y(ys[k]).toFixed(1)}`).join("") }));
    svg.append(drawn("text", { x: 0, y: 16 }, number(high)), drawn("text", { x: 0, y: h - bottom }, number(low)));
    svg.append(drawn("text", { x: left, y: h - 5 }, String(first)), drawn("text", { x: w - 6, y: h - 5, "text-anchor": "end" }, `epoch ${last}`));
    figure.append(make("figcaption", CURVES[name]), svg);
    return figure;
  }
  function mean(numbers, keep) {
    let total = 0, n = 0;
    for (let k = 0; k < count; k++) if (keep(k) && !Number.isNaN(numbers[k])) { total += numbers[k]; n += 1; }
    return n ? total / n : NaN;
  }
  function geometryTables() {
    at("geometry-section").hidden = !layers.length;
    if (!layers.length) return;
    const names = Object.keys(layers[0].statistics).filter((name) => name !== "main_variation");
    const titles = names.map((name) => MEANINGS[name][0]);
    filled(at("layer-table"), "Means over the nodes of each layer", ["Layer", "NRMD", ...titles],
      layers.map((layer) => [layer.number, number(layer.nrmd), ...names.map((name) => number(mean(layer.statistics[name](), () => true)))]));
    classTable(names, titles);
    at("meanings").replaceChildren();
    pairs(at("meanings"), Object.values(MEANINGS));
  }
  function classTable(names, titles) {
    const layer = layers[state.layer];
    if (!nodes.label) { at("class-table").hidden = true; return; }
    const lines = classes.map((name, k) => {
      const inside = (n) => nodes.label[n] === k;
      return [name, whole(nodes.label.reduce((sum, l) => sum + (l === k ? 1 : 0), 0)), ...names.map((s) => number(mean(layer.statistics[s](), inside)))];
    });
    filled(at("class-table"), `Means by class, layer ${layer.number}`, ["Class", "Nodes", ...titles], lines);
  }

  // ---- downloads --------------------------------------------------------------------------------

  const cell = (value) => {
    const text = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const short = (value) => (Number.isNaN(value) ? "" : Number(value.toPrecision(6)));
  function save(name, header, lines) {
    const parts = [header.map(cell).join(",") + "\n"];
    for (const line of lines) parts.push(line.map(cell).join(",") + "\n");
    const link = make("a"), address = URL.createObjectURL(new Blob(parts, { type: "text/csv" }));
    link.href = address; link.download = name;
    document.body.append(link); link.click(); link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    at("status").textContent = `${name} was made.`;
  }
  function saveNodes() {
    const header = ["id"], columns = [];
    const add = (name, of) => { header.push(name); columns.push(of); };
    if (nodes.label) add("class", (n) => (nodes.label[n] < 0 ? "" : classes[nodes.label[n]]));
    if (nodes.predicted) {
      add("predicted", (n) => classes[nodes.predicted[n]]);
      classes.forEach((name, k) => add(`p_${name}`, (n) => short(nodes.probability[n * classes.length + k])));
    }
    if (nodes.part) add("split", partOf);
    add("degree", (n) => nodes.degree[n]);
    for (const name of ["homophily", "clustering"]) add(name, (n) => short(nodes[name][n]));
    for (const layer of layers) {
      for (const [name, get] of Object.entries(layer.statistics)) add(`${name}_layer_${layer.number}`, (n) => short(get()[n]));
    }
    save("nodes.csv", header, Array.from({ length: count }, (_, n) => [nameOf(n), ...columns.map((of) => of(n))]));
  }
  function saveMessages() {
    const layer = layers[state.layer], lines = [], attention = layer.attention();
    for (let n = 0; n < count; n++) {
      for (let k = start[n]; k < start[n + 1]; k++) {
        lines.push([nameOf(source[k]), nameOf(n), short(layer.tau()[k]), ...(attention ? [short(attention[k])] : []), short(layer.weight()[k])]);
      }
    }
    save(`messages_layer_${layer.number}.csv`, ["source", "target", "tau", ...(attention ? ["attention"] : []), "weight"], lines);
  }
  function saveMetric() {
    const layer = layers[state.layer], g = layer.metric(), axes = [...Array(layer.axes).keys()];
    if (!g) { at("status").textContent = "This layer's metric is not in the page; choose the last layer."; return; }
    save(`metric_layer_${layer.number}.csv`, ["id", ...axes.map((k) => `g_${k}`)],
      Array.from({ length: count }, (_, n) => [nameOf(n), ...axes.map((k) => Number(Math.exp(g[n * layer.axes + k]).toPrecision(4)))]));
  }
  function saveEdges(list, name) {
    save(name, ["source", "target"], Array.from(list.low, (a, k) => [nameOf(a), nameOf(list.high[k])]));
  }
  function saveCurves() {
    const names = Object.keys(data.curves);
    save("curves.csv", names, data.curves.epoch.map((_, k) => names.map((name) => data.curves[name][k])));
  }
  function downloads() {
    const offers = [["Nodes", saveNodes], ["Edges", () => saveEdges(original(), "edges.csv")]];
    if (layers.length) offers.push(["Messages of the layer", saveMessages], ["Metric of the layer", saveMetric]);
    if (data.rewired) offers.push(["Rewired edges", () => saveEdges(rewired(), "rewired.csv")]);
    if (data.curves) offers.push(["Learning curves", saveCurves]);
    for (const [name, act] of offers) {
      const button = make("button", `${name} (CSV)`);
      button.type = "button";
      button.addEventListener("click", act);
      at("downloads").append(button);
    }
  }

  // ---- building the page ------------------------------------------------------------------------

  function overview() {
    at("title").textContent = data.title;
    at("lead").textContent = `${whole(count)} nodes, ${whole(source.length / 2)} edges`
      + (classes.length ? `, ${classes.length} classes` : "")
      + (layers.length ? `, ${layers.length} learned layers` : ", no learned metric");
    if (data.facts) pairs(at("facts"), data.facts);
    if (data.scores) {
      filled(at("scores"), "Scores in per cent", ["Score", "this split", "mean", "± 95 %", "splits"],
        data.scores.map((s) => [s.name, percent(s.here), percent(s.mean), percent(s.interval), s.n]));
      at("protocol").textContent = `Protocol: ${data.protocol}. ± is the ${data.interval}.`;
    }
    (data.notes || []).forEach((note) => at("notes").append(make("li", note)));
    at("notes").hidden = !(data.notes || []).length;
    at("curves-section").hidden = !data.curves;
    if (data.curves) {
      for (const [name, numbers] of Object.entries(data.curves)) {
        if (name !== "epoch" && numbers.some((v) => v !== null)) at("curves").append(curve(name, numbers));
      }
      at("curves").append(make("p", `The dashed line is the chosen epoch, ${data.chosen_epoch}.`, "quiet"));
    }
  }
  function fillControls() {
    const color = at("color");
    if (nodes.label) option(color, "label", "class");
    if (nodes.predicted) option(color, "predicted", "prediction");
    if (nodes.predicted && nodes.label) option(color, "error", "error");
    if (layers.length) {
      for (const name of Object.keys(layers[0].statistics)) option(color, name, MEANINGS[name][0]);
      option(color, "axis", "metric axis");
    }
    option(color, "degree", "degree");
    if (nodes.label) option(color, "homophily", "local homophily");
    option(color, "clustering", "clustering");
    if (nodes.part) option(color, "part", "split");
    state.color = color.value;
    layers.forEach((layer, k) => option(at("layer"), k, layer.number));
    at("layer").value = String(state.layer);
    at("layer-field").hidden = !layers.length;
    option(at("edges"), "none", "none"); option(at("edges"), "original", "original");
    if (data.rewired) option(at("edges"), "rewired", "rewired");
    option(at("class-filter"), -2, "all");
    if (nodes.label) {
      classes.forEach((name, k) => option(at("class-filter"), k, name));
      if (nodes.label.some((l) => l < 0)) option(at("class-filter"), -1, "no label");
    } else at("class-filter").parentElement.hidden = true;
    at("part-field").hidden = !nodes.part;
    option(at("part-filter"), -2, "all");
    PARTS.forEach((name, k) => option(at("part-filter"), k, name));
    at("result-field").hidden = !nodes.predicted || !nodes.label;
    option(at("result-filter"), -1, "all");
    RESULTS.slice(0, 2).forEach((name, k) => option(at("result-filter"), k, name));
  }
  function rewiringWords() {
    const box = at("rewiring"), found = data.rewired;
    box.hidden = state.edges !== "rewired" || !found;
    if (box.hidden) return;
    const change = ([a, b]) => `${number(a)} to ${number(b)}`;
    const isNew = rewired().isNew.reduce((sum, v) => sum + v, 0);
    box.textContent = `Rewired along learned distances, every degree kept: ${whole(isNew)} of ${whole(source.length / 2)} edges are new (orange). `
      + `Homophily ${change(found.homophily)}; between nodes that were not trained on ${change(found.held_out)}.`;
  }
  function listenControls() {
    at("controls").addEventListener("submit", (event) => event.preventDefault());
    at("color").addEventListener("change", (event) => {
      state.color = event.target.value;
      at("axis-field").hidden = state.color !== "axis";
      checkAxis(); recolor();
    });
    at("axis").addEventListener("input", () => { checkAxis(); recolor(); });
    at("layer").addEventListener("change", (event) => {
      state.layer = Number(event.target.value);
      checkAxis(); recolor(); detail(); geometryTables();
    });
    at("view").addEventListener("change", (event) => { state.view = Number(event.target.value); reset(); status(); });
    at("edges").addEventListener("change", (event) => { state.edges = event.target.value; rewiringWords(); draw(); });
    for (const [id, name] of [["class-filter", "label"], ["part-filter", "part"], ["result-filter", "result"]]) {
      at(id).addEventListener("change", (event) => { state.filter[name] = Number(event.target.value); refilter(); });
    }
    at("search").addEventListener("input", offer);
    at("search").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      const found = offer();
      if (found.length) choose(found[0], true);
    });
    at("zoom-in").addEventListener("click", () => zoom(1.4));
    at("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
    at("reset").addEventListener("click", reset);
  }
  function checkAxis() {
    if (!layers.length) return;
    const layer = layers[state.layer], most = layer.axes - 1;
    at("axis").max = most;
    state.axis = Math.max(0, Math.min(most, Math.floor(Number(at("axis").value) || 0)));
    if (state.color === "axis" && !layer.metric()) {
      state.layer = layers.length - 1;
      at("layer").value = String(state.layer);
    }
  }
  function step(by) {
    if (!shownCount) return;
    let n = state.chosen < 0 && by < 0 ? 0 : state.chosen;
    do n = (n + by + count) % count; while (!shown[n]);
    choose(n, true);
  }
  const KEYS = {
    n: () => step(1), p: () => step(-1), "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: reset,
    Escape: () => choose(-1), ArrowLeft: () => shift(40, 0), ArrowRight: () => shift(-40, 0),
    ArrowUp: () => shift(0, 40), ArrowDown: () => shift(0, -40),
  };
  function shift(dx, dy) {
    if (state.view === 1) { state.yaw += dx / 150; state.pitch = Math.max(-1.55, Math.min(1.55, state.pitch + dy / 150)); }
    else { state.x += dx; state.y += dy; }
    moved();
  }
  function listenMap() {
    const fingers = new Map();
    let dragged = 0, spread = 0;
    canvas.addEventListener("keydown", (event) => {
      const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
      dragged = 0; spread = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) { hover(event.offsetX, event.offsetY); return; }
      const dx = event.offsetX - before[0], dy = event.offsetY - before[1];
      fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
      dragged += Math.abs(dx) + Math.abs(dy);
      if (fingers.size === 1 && dragged > 3) shift(dx, dy);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()], now = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (spread) zoom(now / spread, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        spread = now; dragged = 99;
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      fingers.delete(event.pointerId);
      if (dragged <= 4) choose(nearest(event.offsetX, event.offsetY, event.pointerType === "touch" ? 22 : 14));
    });
    canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => { at("tip").hidden = true; });
    canvas.addEventListener("wheel", (event) => {
      // A page can be scrolled past the map; the map takes the wheel once it has been clicked.
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
  }
  function hover(x, y) {
    const n = nearest(x, y), tip = at("tip");
    tip.hidden = n < 0;
    if (n < 0) return;
    tip.textContent = nodes.label ? `${nameOf(n)}: ${classOf(nodes.label[n])}` : nameOf(n);
    tip.style.left = `${Math.min(x + 12, Math.max(0, width - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, y - 30)}px`;
  }

  readTheme(); overview(); fillControls(); listenControls(); listenMap(); downloads();
  refilter(); recolor(); detail(); geometryTables();
  isDark.addEventListener("change", () => { readTheme(); recolor(); });
  new ResizeObserver(resize).observe(canvas);
  resize();
  // For tests: where a node is on the screen, and how long the page took.
  window.argnnExplorer = {
    place: (node) => { place(); return [screenX[node], screenY[node]]; },
    paint, state: () => ({ ...state, shown: shownCount }), ready: performance.now(),
  };
})();
