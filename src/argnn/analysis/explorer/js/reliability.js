// Whether probabilities mean what they say: confidence beside the share of right predictions.

function reliabilityPart() {
  const found = data.reliability;
  if (!found) return [];
  const words = `Of ${whole(found.count)} test nodes. Bars reach the dashed line where a `
    + "probability is the share of right predictions; the number of nodes stands above. "
    + `Expected calibration error ${percent(found.error)} %.`;
  return [
    make("h3", "Can the probabilities be trusted?"),
    reliabilityDrawing(found, words),
    make("p", words, "quiet"),
  ];
}

function reliabilityDrawing({ bins, width: step }, words) {
  const [width, height, left, top, floor] = [340, 190, 34, 16, 160];
  const x = (share) => left + (width - left - 8) * share;
  const y = (share) => floor - (floor - top) * share;
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
  for (const [size, sure, right] of bins) {
    const from = Math.min(1 / step - 1, Math.floor(sure / step + 1e-9)) * step;
    const bar = makeSvg("rect", {
      x: x(from) + 1,
      width: x(step) - x(0) - 2,
      y: y(right),
      height: Math.max(0.5, floor - y(right)),
      class: "up",
    });
    const text = `${whole(size)} nodes at ${percent(sure)} %: ${percent(right)} % right`;
    bar.append(makeSvg("title", {}, text));
    const middle = x(from + step / 2);
    svg.append(bar, makeSvg("text", { x: middle, y: y(right) - 3, "text-anchor": "middle" }, shortCount(size)));
  }
  svg.append(
    makeSvg("line", { x1: x(0), x2: x(1), y1: y(0), y2: y(1), class: "chosen" }),
    makeSvg("line", { x1: x(0), x2: x(1), y1: floor, y2: floor, class: "axis-line" }),
    makeSvg("text", { x: 0, y: top + 8 }, "100 %"),
    makeSvg("text", { x: 0, y: floor }, "right"),
    makeSvg("text", { x: x(0), y: height - 8 }, "0 %"),
    makeSvg("text", { x: x(0.5), y: height - 8, "text-anchor": "middle" }, "probability of the prediction"),
    makeSvg("text", { x: x(1), y: height - 8, "text-anchor": "end" }, "100 %"),
  );
  return svg;
}

function shortCount(size) {
  return size < 1000 ? String(size) : `${(size / 1000).toFixed(size < 10000 ? 1 : 0)}k`;
}
