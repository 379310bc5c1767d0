// The chosen node and its neighbors, drawn on a second canvas that lies over the map.

const marks = at("marks");
const marksPen = marks.getContext("2d");

function paintMarks() {
  preparePen(marksPen);
  if (state.chosen < 0) return;
  const look = currentLook();
  const [x, y] = project(look, state.chosen);
  const around = neighborPlaces(state.chosen).map((k) => neighborOf[k]);
  const placesAround = around.map((node) => project(look, node));
  strokeSpokes(x, y, placesAround);
  // The lines run over the nodes at their ends: those are drawn again.
  around.forEach((node, k) => fillDot(node, ...placesAround[k]));
  fillDot(state.chosen, x, y);
  strokeRing(x, y);
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

function fillDot(node, x, y) {
  marksPen.fillStyle = colorOf(node);
  marksPen.beginPath();
  marksPen.arc(x, y, nodeRadius(), 0, 2 * Math.PI);
  marksPen.fill();
}

function strokeRing(x, y) {
  marksPen.strokeStyle = scene.theme.ring;
  marksPen.lineWidth = 2.2;
  marksPen.beginPath();
  marksPen.arc(x, y, nodeRadius() + 4, 0, 2 * Math.PI);
  marksPen.stroke();
}
