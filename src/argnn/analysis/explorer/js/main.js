// Building the page once, and following the window.

readTheme();
showOverview();
showCurves();
showDownloads();
fillControls();
listenControls();
listenSearch();
listenKeys();
listenWheel();
listenPointers();
proposeAxis();
changeAxis();
refilter();
showDetail();
showGeometry();

isDark.addEventListener("change", () => {
  readTheme();
  recolor();
});
// WebGL keeps no picture that could be printed.
window.addEventListener("beforeprint", paint);
new ResizeObserver(resize).observe(canvas);
resize();

// For tests and measurements: where a node is, drawing at once, and what is chosen.
window.argnnExplorer = {
  place: (node) => project(currentLook(), node).slice(0, 2),
  paint,
  depth: (node) => project(currentLook(), node)[2],
  state: () => ({ ...state, shown: scene.shownCount, selected: [...(state.selected || [])] }),
  ready: performance.now(),
};
