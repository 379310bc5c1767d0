// Draws the map where there is no WebGL, with the browser's two-dimensional pen.
//
// A painter has
//   canvas           the element it draws on
//   isSlow           whether fewer edges have to be drawn while the map moves
//   remark()         a sentence for the reader about how the map is drawn, or ""
//   colorsChanged()  colors, filters or the theme are others
//   edgesChanged()   other edges are shown, or other nodes
//   paint()          draws edges and nodes now

function canvasPainter(canvas) {
  const pen = canvas.getContext("2d");

  function paint() {
    const places = projectAll();
    const order = state.view === SPACE ? fromFarToNear(places.far) : mixedOrder;
    preparePen(pen);
    paintEdges(places);
    paintNodes(places, order);
  }

  function paintEdges(places) {
    const edges = chosenEdges();
    if (!edges) return;
    pen.lineWidth = EDGE_WIDTH;
    pen.globalAlpha = edgeOpacity(edges.low.length);
    strokeEdges(edges, 0, scene.theme.edge, places);
    strokeEdges(edges, 1, scene.theme["new-edge"], places);
    pen.globalAlpha = 1;
  }

  function strokeEdges({ low, high, isNew }, kind, color, { x, y }) {
    const step = Math.ceil(1 / edgeShare(low.length));
    pen.strokeStyle = color;
    pen.beginPath();
    for (let k = 0; k < low.length; k += step) {
      if (isNew[k] !== kind || !scene.shown[low[k]] || !scene.shown[high[k]]) continue;
      pen.moveTo(x[low[k]], y[low[k]]);
      pen.lineTo(x[high[k]], y[high[k]]);
    }
    pen.stroke();
  }

  function paintNodes({ x, y, far }, order) {
    const faint = depthImages(scene.theme.faint, faintRadius());
    const dots = scene.coloring.colors.map((color) => depthImages(color, nodeRadius()));
    const put = (node, images) => stamp(pen, images[depthLevel(far[node])](), x[node], y[node]);
    for (const node of order) if (!scene.shown[node]) put(node, faint);
    for (const node of order) if (scene.shown[node]) put(node, dots[scene.bucket[node]]);
  }

  return {
    canvas,
    isSlow: true,
    remark: () => `Drawn without WebGL${thinningWords()}.`,
    colorsChanged: () => {},
    edgesChanged: () => {},
    paint,
  };
}

function fromFarToNear(far) {
  return Uint32Array.from(mixedOrder).sort((a, b) => far[b] - far[a]);
}

// Clears the canvas of a pen, which then measures in pixels of the page.
function preparePen(pen) {
  pen.setTransform(frame.ratio, 0, 0, frame.ratio, 0, 0);
  pen.clearRect(0, 0, frame.width, frame.height);
}

// Nodes lie between -1, the nearest, and 1; as many sizes and shades of a dot are drawn.
const DEPTHS = 16;

function depthLevel(far) {
  return clamp(Math.floor((far + 1) / 2 * DEPTHS), 0, DEPTHS - 1);
}

function depthImages(color, radius) {
  return Array.from({ length: DEPTHS }, (_, level) => later(() => {
    const far = state.view === SPACE ? 2 * (level + 0.5) / DEPTHS - 1 : 0;
    return dotImage(mixed(color, scene.theme.panel, fog(far)), radius * nearness(far));
  }));
}

// Copying a picture of a dot is much quicker than drawing an arc for each node.
function dotImage(color, radius) {
  const image = document.createElement("canvas");
  const size = Math.ceil((radius + 1) * 2 * frame.ratio);
  image.width = size;
  image.height = size;
  const pen = image.getContext("2d");
  pen.fillStyle = color;
  pen.beginPath();
  pen.arc(size / 2, size / 2, radius * frame.ratio, 0, 2 * Math.PI);
  pen.fill();
  return image;
}

function stamp(pen, image, x, y) {
  if (isOutside(x, y, 9)) return;
  const size = image.width / frame.ratio;
  pen.drawImage(image, x - size / 2, y - size / 2, size, size);
}
