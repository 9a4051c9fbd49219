"use strict";
// The map as a file: its numbers as CSV, its panels as one picture with title and legend.

/** Save what the map shows as CSV. @param {any} set @param {Layout} layout @param {any} value */
function saveMap(set, layout, value) {
  const fields = [layout.y, layout.x, ...layout.panels, ...layout.fixed.map(([f]) => f)].filter((f) => f !== null);
  const classes = value.kind === "classes";
  const by = classes ? thresholdsIn(set) : null;
  const ends = by ? [by.fitted, by.solved].map((error) => (Number.isNaN(error) ? "" : error)) : [];
  const head = [...fields.map((f) => f.name), "n",
    ...(classes ? [...value.names, "fitted at most", "solved at most"]
    : ["solved", "diverged", ...(value.kind === "share" ? ["share", "low", "high"] : [value.value, "low", "high", "defined for"])])];
  const order = [...layout.shown].sort((a, b) =>
    fields.map((f) => f.codes[a] - f.codes[b]).find((difference) => difference) || a - b);
  const rows = order.map((i) => [...fields.map((f) => f.set[f.codes[i]]),
    set.counts.n[i],
    ...(classes ? [...value.counts.map((/** @type {number[]} */ c) => c[i]), ...ends]
      : [set.counts.solved[i], set.counts.diverged[i], value.values[i], value.low[i], value.high[i], ...(value.kind === "share" ? [] : [value.n[i]])])]);
  download(`${set.name}-${value.value}.csv`, csv([head, ...rows]));
}

/** Return the lines above a picture: what runs, and what is shown of them. @param {any} set @param {Layout} layout @param {any} value */
function pictureTitle(set, layout, value) {
  const by = value.kind === "classes" ? thresholdsIn(set) : null;
  const shown = by ? `what became of the runs; fitted: training error ≤ ${written(by.fitted)}, solved: test error ≤ ${written(by.solved)}, grokked: solved at least ${LATER} times later than fitted`
    : value.label;
  const only = layout.fixed.map(([field, code]) => `${field.label} ${field.levels[code]}`);
  return [[set.id, set.scale].filter(Boolean).join(" ") + (set.id ? ": " : "") + set.title, [...set.settings, ...only, shown].join(" · ")];
}

/**
 * Save the panels as one picture.
 * @param {any} set @param {Layout} layout @param {any} value @param {Element} panels
 * @param {LegendItem[]} items @param {"svg" | "png"} kind
 */
function savePicture(set, layout, value, panels, items, kind) {
  const colour = (/** @type {string} */ name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const parts = [...panels.querySelectorAll("figure")];
  const whole = shape("svg", { xmlns: SVG });
  const widths = parts.map((part) => Number(/** @type {SVGElement} */ (part.querySelector("svg")).getAttribute("width")));
  const broad = Math.max(640, Math.min(1600, widths.reduce((sum, w) => sum + w + 20, 0)), ...widths);
  const legend = legendPicture(items, broad);
  pictureTitle(set, layout, value).forEach((line, at) =>
    whole.append(shape("text", { x: 4, y: 16 + 18 * at, ...(at ? {} : { style: "font-weight: 700" }) }, shortened(line, Math.floor(broad / 6)))));
  legend.group.setAttribute("transform", "translate(0 46)");
  whole.append(legend.group);
  let x = 0, y = 52 + legend.height, high = 0, wide = broad;
  for (const part of parts) {
    const picture = /** @type {SVGElement} */ (part.querySelector("svg"));
    const [w, h] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
    if (x && x + w > 1600) { x = 0; y += high; high = 0; }
    const copy = /** @type {SVGElement} */ (picture.cloneNode(true));
    copy.setAttribute("x", String(x));
    copy.setAttribute("y", String(y + 20));
    const title = part.querySelector("figcaption");
    whole.append(shape("text", { x: x + 4, y: y + 14, style: "font-weight: 600" }, title ? title.textContent : ""), copy);
    x += w + 20; high = Math.max(high, h + 30); wide = Math.max(wide, x);
  }
  const [width, height] = [Math.ceil(wide), Math.ceil(y + high)];
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) whole.setAttribute(name, String(value));
  whole.prepend(shape("style", {}, `text { font: 11px sans-serif; fill: ${colour("--ink")}; } .edge { fill: none; }`),
    shape("rect", { width, height, fill: colour("--page") }));
  const text = new XMLSerializer().serializeToString(whole).replaceAll(/var\((--[a-z]+)\)/g, (_, name) => colour(name));
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
