// Draws the map with WebGL; the methods of a painter are listed in painter_canvas.js.
//
// Positions, colors and edges lie in the memory of the graphics card. Moving the map changes a few
// numbers only, so that all edges can be drawn in every frame. Some browsers offer WebGL without a
// graphics card; that is slow, and the reader is told.

const PLACE_SHADER = `#version 300 es
layout(location = 0) in vec3 place;
layout(location = 1) in vec4 color;
uniform vec2 size;
uniform vec3 look;
uniform vec4 turn;

// The same as project(), nearness() and fog() of camera.js.
float far;
float nearness;
vec4 onScreen() {
  float side = turn.x * place.x + turn.y * place.z;
  float back = -turn.y * place.x + turn.x * place.z;
  float up = turn.z * place.y - turn.w * back;
  far = turn.w * place.y + turn.z * back;
  nearness = ${EYE.toFixed(1)} / (${EYE.toFixed(1)} + far);
  vec2 pixel = vec2(look.y + look.x * side * nearness, look.z - look.x * up * nearness);
  return vec4(2.0 * pixel.x / size.x - 1.0, 1.0 - 2.0 * pixel.y / size.y, far / ${EYE.toFixed(1)}, 1.0);
}
`;
// One call draws the nodes that pass the filters, another the others: the fourth channel says.
const NODE_SHADER = `${PLACE_SHADER}
uniform float isShown;
uniform float radius;
uniform vec4 mist;
flat out vec3 fill;
flat out float extent;
void main() {
  vec4 spot = onScreen();
  gl_Position = color.a == isShown ? spot : vec4(2.0, 2.0, 2.0, 1.0);
  extent = radius * nearness;
  gl_PointSize = 2.0 * extent + 2.0;
  fill = mix(color.rgb, mist.rgb, mist.a * clamp((far + 1.0) / 2.0, 0.0, 1.0));
}
`;
// A point of WebGL is a square: what lies outside the circle is left out.
const DOT_SHADER = `#version 300 es
precision highp float;
uniform float leastCover;
flat in vec3 fill;
flat in float extent;
out vec4 pixel;
void main() {
  float away = length(gl_PointCoord - 0.5) * (2.0 * extent + 2.0);
  float cover = clamp(extent + 0.5 - away, 0.0, 1.0);
  if (cover < leastCover) discard;
  pixel = vec4(fill * cover, cover);
}
`;
const EDGE_SHADER = `${PLACE_SHADER}
void main() {
  gl_Position = onScreen();
}
`;
const LINE_SHADER = `#version 300 es
precision highp float;
uniform vec4 stroke;
out vec4 pixel;
void main() {
  pixel = vec4(stroke.rgb * stroke.a, stroke.a);
}
`;

// The painter, or null where this browser has no WebGL.
function webglPainter(canvas) {
  const isSlow = isSoftware();
  // A graphics card smooths lines itself; the processor takes four times as long with it.
  const gl = canvas.getContext("webgl2", { antialias: !isSlow });
  if (!gl) return null;
  const old = { colors: true, edges: true };
  let memory = graphicsMemory(gl);
  if (!memory) return null;

  function refill() {
    if (old.colors) fillColors(gl, memory);
    if (old.edges) fillEdges(gl, memory);
    old.colors = false;
    old.edges = false;
  }

  const isAway = () => gl.isContextLost() || !memory;

  function paint() {
    if (isAway()) return;
    refill();
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(...rgb(scene.theme.panel).map((channel) => channel / 255), 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.bindVertexArray(memory.views[state.view]());
    paintEdges(gl, memory);
    paintNodes(gl, memory);
  }

  function lost(event) {
    event.preventDefault(); // otherwise the browser never gives it back
    showStatus();
  }

  function restored() {
    memory = graphicsMemory(gl);
    old.colors = true;
    old.edges = true;
    showStatus();
    draw();
  }

  function remark() {
    if (isAway()) return "The browser has taken the graphics card away; the map waits.";
    return isSlow ? `Drawn by WebGL without a graphics card${thinningWords()}.` : "";
  }

  canvas.addEventListener("webglcontextlost", lost);
  canvas.addEventListener("webglcontextrestored", restored);
  return {
    canvas,
    isSlow,
    remark,
    colorsChanged: () => {
      old.colors = true;
    },
    edgesChanged: () => {
      old.edges = true;
    },
    paint,
  };
}

// Whether WebGL is drawn by the processor. That can be asked only of a context that is there
// already, and then it is too late to choose how lines are drawn: so this one is thrown away.
function isSoftware() {
  const gl = make("canvas").getContext("webgl2");
  if (!gl) return false;
  const isHidden = gl.getParameter(gl.RENDERER) === "WebKit WebGL";
  const details = isHidden && gl.getExtension("WEBGL_debug_renderer_info");
  const name = gl.getParameter(details ? details.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  const freeing = gl.getExtension("WEBGL_lose_context");
  if (freeing) freeing.loseContext();
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

function linkedProgram(gl, vertexText, fragmentText) {
  const program = gl.createProgram();
  for (const [type, text] of [[gl.VERTEX_SHADER, vertexText], [gl.FRAGMENT_SHADER, fragmentText]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  const uniforms = {};
  for (let k = 0; k < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); k++) {
    const { name } = gl.getActiveUniform(program, k);
    uniforms[name] = gl.getUniformLocation(program, name);
  }
  return { program, uniforms };
}

// Programs and buffers; null where the shaders are refused.
function graphicsMemory(gl) {
  const nodeProgram = linkedProgram(gl, NODE_SHADER, DOT_SHADER);
  const edgeProgram = linkedProgram(gl, EDGE_SHADER, LINE_SHADER);
  if (!nodeProgram || !edgeProgram) return null;
  const memory = {
    nodeProgram,
    edgeProgram,
    colors: gl.createBuffer(),
    edges: gl.createBuffer(),
    oldEnds: 0, // of edges that were there before, then of new ones
    newEnds: 0,
  };
  memory.views = places.map((place) => later(() => vertexArray(gl, memory, place().points)));
  return memory;
}

// The nodes lie in the mixed order, and are drawn in it.
function vertexArray(gl, memory, points) {
  const mixed = new Float32Array(3 * count);
  mixedOrder.forEach((node, k) => {
    mixed.set(points.subarray(3 * node, 3 * node + 3), 3 * k);
  });
  const found = gl.createVertexArray();
  gl.bindVertexArray(found);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, mixed, gl.STATIC_DRAW);
  gl.enableVertexAttribArray(0);
  gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
  gl.bindBuffer(gl.ARRAY_BUFFER, memory.colors);
  gl.enableVertexAttribArray(1);
  gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 0, 0);
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, memory.edges);
  return found;
}

function fillColors(gl, memory) {
  const palette = scene.coloring.colors.map(rgb);
  const faint = rgb(scene.theme.faint);
  const colors = new Uint8Array(4 * count);
  mixedOrder.forEach((node, k) => {
    const isShown = scene.shown[node];
    colors.set(isShown ? palette[scene.bucket[node]] : faint, 4 * k);
    colors[4 * k + 3] = isShown ? 255 : 0;
  });
  gl.bindBuffer(gl.ARRAY_BUFFER, memory.colors);
  gl.bufferData(gl.ARRAY_BUFFER, colors, gl.DYNAMIC_DRAW);
}

function fillEdges(gl, memory) {
  const edges = chosenEdges();
  const before = edges ? edgeEnds(edges, 0) : [];
  const added = edges ? edgeEnds(edges, 1) : [];
  memory.oldEnds = before.length;
  memory.newEnds = added.length;
  gl.bindVertexArray(null); // or the buffer would be put into the array of another view
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, memory.edges);
  gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, Uint32Array.from([...before, ...added]), gl.DYNAMIC_DRAW);
}

// Where the ends of the edges lie in the mixed order, of old or new edges between shown nodes.
// The edges are mixed too: the first of them stand for all where not all are drawn.
function edgeEnds({ low, high, isNew }, kind) {
  const rank = mixedRank();
  const ends = [];
  for (const k of mixedNumbers(low.length)) {
    if (isNew[k] !== kind || !scene.shown[low[k]] || !scene.shown[high[k]]) continue;
    ends.push(rank[low[k]], rank[high[k]]);
  }
  return ends;
}

const mixedRank = later(() => {
  const rank = new Uint32Array(count);
  mixedOrder.forEach((node, k) => {
    rank[node] = k;
  });
  return rank;
});

function useProgram(gl, { program, uniforms }) {
  const look = currentLook();
  gl.useProgram(program);
  gl.uniform2f(uniforms.size, frame.width, frame.height);
  gl.uniform3f(uniforms.look, look.unit, look.x, look.y);
  gl.uniform4f(uniforms.turn, look.cosYaw, look.sinYaw, look.cosPitch, look.sinPitch);
}

function paintEdges(gl, { edgeProgram, oldEnds, newEnds }) {
  const edges = chosenEdges();
  if (!edges) return;
  // A line of WebGL is one pixel of the screen wide; how dark it is stands for its width.
  const opacity = Math.min(1, EDGE_WIDTH * frame.ratio * edgeOpacity(edges.low.length));
  const share = edgeShare(edges.low.length);
  const stroke = (name, first, ends) => {
    const color = rgb(scene.theme[name]).map((channel) => channel / 255);
    gl.uniform4f(edgeProgram.uniforms.stroke, ...color, opacity);
    gl.drawElements(gl.LINES, 2 * Math.ceil(share * ends / 2), gl.UNSIGNED_INT, 4 * first);
  };
  gl.disable(gl.DEPTH_TEST);
  useProgram(gl, edgeProgram);
  stroke("edge", 0, oldEnds);
  stroke("new-edge", oldEnds, newEnds);
}

function paintNodes(gl, { nodeProgram }) {
  const { uniforms } = nodeProgram;
  const isSpace = state.view === SPACE;
  useProgram(gl, nodeProgram);
  // Where depth decides, a soft rim would hide what lies behind it.
  gl.uniform1f(uniforms.leastCover, isSpace ? 0.5 : 0.01);
  const panel = rgb(scene.theme.panel).map((channel) => channel / 255);
  gl.uniform4f(uniforms.mist, ...panel, isSpace ? MOST_FOG : 0);
  const drawDots = (isShown, radius) => {
    gl.uniform1f(uniforms.isShown, isShown);
    gl.uniform1f(uniforms.radius, radius * frame.ratio);
    gl.drawArrays(gl.POINTS, 0, count);
  };
  gl.disable(gl.DEPTH_TEST);
  if (scene.shownCount < count) drawDots(0, faintRadius());
  if (isSpace) gl.enable(gl.DEPTH_TEST);
  drawDots(1, nodeRadius());
}
