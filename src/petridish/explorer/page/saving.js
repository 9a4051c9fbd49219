"use strict";
// The map as a file: its numbers as CSV, its panels as one picture.

/** Save what the map shows as CSV. @param {any} set @param {Layout} layout @param {any} value */
function saveMap(set, layout, value) {
  const fields = [layout.y, layout.x, ...layout.panels, ...layout.fixed.map(([f]) => f)].filter((f) => f !== null);
  const classes = value.kind === "classes";
  const head = [...fields.map((f) => f.name), "n", "solved", "diverged",
    ...(classes ? value.names : [value.kind === "share" ? "share" : value.value, "low", "high"])];
  const rows = layout.shown.map((i) => [...fields.map((f) => f.set[f.codes[i]]),
    set.counts.n[i], set.counts.solved[i], set.counts.diverged[i],
    ...(classes ? value.counts.map((/** @type {number[]} */ c) => c[i]) : [value.values[i], value.low[i], value.high[i]])]);
  download(`${set.name}-${value.value}.csv`, csv([head, ...rows]));
}

/** Save the panels as one picture. @param {Element} panels @param {"svg" | "png"} kind */
function savePicture(panels, kind) {
  const colour = (/** @type {string} */ name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const parts = [...panels.querySelectorAll("figure")];
  const whole = shape("svg", { xmlns: SVG });
  let x = 0, y = 0, high = 0, wide = 0;
  for (const part of parts) {
    const picture = /** @type {SVGElement} */ (part.querySelector("svg"));
    const [w, h] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
    if (x && x + w > 1600) { x = 0; y += high; high = 0; }
    const copy = /** @type {SVGElement} */ (picture.cloneNode(true));
    copy.setAttribute("x", String(x));
    copy.setAttribute("y", String(y + 20));
    const title = part.querySelector("figcaption");
    whole.append(shape("text", { x: x + 4, y: y + 14, "font-weight": 600 }, title ? title.textContent : ""), copy);
    x += w + 20; high = Math.max(high, h + 30); wide = Math.max(wide, x);
  }
  const [width, height] = [Math.ceil(wide), Math.ceil(y + high)];
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) whole.setAttribute(name, String(value));
  whole.prepend(shape("style", {}, `text { font: 11px sans-serif; fill: ${colour("--ink")}; } .edge { fill: none; }`),
    shape("rect", { width, height, fill: colour("--page") }));
  const text = new XMLSerializer().serializeToString(whole).replaceAll("var(--none)", colour("--none"));
  const name = `${state.of}-map.${kind}`;
  if (kind === "svg") return download(name, new Blob([text], { type: "image/svg+xml" }));
  const image = new Image();
  image.onload = () => {
    const canvas = element("canvas", { width: 2 * width, height: 2 * height });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.drawImage(image, 0, 0);
    canvas.toBlob((/** @type {Blob} */ blob) => download(name, blob));
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
}
