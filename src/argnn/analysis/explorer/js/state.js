// What the user has chosen. Views are numbered: 0 is the plane, 1 is space.

const ANY = -2;
const FIRST_LOOK = { scale: 1, x: 0, y: 0, yaw: 0.6, pitch: 0.35 };
const [PLANE, SPACE] = [0, 1];

const state = {
  color: "",
  axis: 0,
  feature: 0,
  layer: data.start ? data.start[0] : layers.length - 1,
  view: PLANE,
  edges: "none",
  filter: { label: ANY, part: ANY, result: ANY },
  hidden: new Set(), // groups of the legend
  selected: null, // a set of nodes
  chosen: -1,
  ...FIRST_LOOK,
};
