// The chosen node and its neighbors, drawn on a second canvas that lies over the map.

const marks = at("marks");
const marksPen = marks.getContext("2d");

function paintMarks() {
  preparePen(marksPen);
  if (lasso.outline) strokeLasso(lasso.outline);
  if (state.chosen < 0) return;
  const look = currentLook();
  const [x, y, far] = project(look, state.chosen);
  const around = neighborPlaces(state.chosen).map((k) => neighborOf[k]);
  const placesAround = around.map((node) => project(look, node));
  strokeSpokes(x, y, placesAround);
  // The lines run over the nodes at their ends: those are drawn again.
  around.forEach((node, k) => fillDot(node, ...placesAround[k]));
  fillDot(state.chosen, x, y, far);
  strokeRing(x, y, far);
}

function strokeLasso(outline) {
  marksPen.strokeStyle = scene.theme.ink;
  marksPen.lineWidth = 1.4;
  marksPen.setLineDash([5, 4]);
  marksPen.beginPath();
  for (const [x, y] of outline) marksPen.lineTo(x, y);
  marksPen.closePath();
  marksPen.stroke();
  marksPen.setLineDash([]);
}

function strokeSpokes(x, y, ends) {
  marksPen.strokeStyle = scene.theme.ink;
  marksPen.lineWidth = 1.1;
  marksPen.globalAlpha = Math.min(0.7, 4 / Math.sqrt(ends.length + 1));
  marksPen.beginPath();
  for (const [endX, endY] of ends) {
    marksPen.moveTo(x, y);
    marksPen.lineTo(endX, endY);
  }
  marksPen.stroke();
  marksPen.globalAlpha = 1;
}

function fillDot(node, x, y, far) {
  marksPen.fillStyle = mixed(colorOf(node), scene.theme.panel, fog(far));
  marksPen.beginPath();
  marksPen.arc(x, y, nodeRadius() * nearness(far), 0, 2 * Math.PI);
  marksPen.fill();
}

function strokeRing(x, y, far) {
  marksPen.strokeStyle = scene.theme.ring;
  marksPen.lineWidth = 2.2;
  marksPen.beginPath();
  marksPen.arc(x, y, nodeRadius() * nearness(far) + 4, 0, 2 * Math.PI);
  marksPen.stroke();
}
