"use strict";
// The map: one cell per setting over two axes, one panel for each value of the other fields.

const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74",
  "#c3b369", "#e1cc55", "#fee838"];
const ZOOMS = ["0.5", "1", "1.5", "2", "3"];
const DOTS_FROM = 56; // pixels of a cell
const MOST_TEXTS = 4000; // cells with a number in them

/** Return a colour between dark and light. @param {number} share */
function shade(share) {
  const place = Math.min(Math.max(share, 0), 1) * (CIVIDIS.length - 1);
  const left = Math.min(Math.floor(place), CIVIDIS.length - 2);
  const mixed = [1, 3, 5].map((at) => {
    const [a, b] = [CIVIDIS[left], CIVIDIS[left + 1]].map((c) => parseInt(c.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * (place - left));
  });
  return `rgb(${mixed.join(",")})`;
}

/** Return what maps values to 0 … 1: shares as they are, others between their ends. @param {any} value @param {number[]} shown */
function scaleOf(value, shown) {
  if (value.kind === "share") return { of: (/** @type {number} */ v) => v, ends: [0, 1], log: false };
  const finite = shown.map((i) => num(value.values[i])).filter(Number.isFinite);
  const low = Math.min(...finite), high = Math.max(...finite);
  const log = low > 0 && high / low > 30;
  const at = (/** @type {number} */ v) => log ? Math.log(v) : v;
  const width = at(high) - at(low);
  return { of: (/** @type {number} */ v) => width > 0 ? (at(v) - at(low)) / width : 0.5,
    ends: [low, high], log };
}

/** Show the map. @param {any} set */
async function showMap(set) {
  const name = state.value || set.usual;
  const layout = layOut(set, state);
  const [value, claims, dots] = await Promise.all([
    ask("value", { of: set.name, value: name }),
    state.claim ? ask("claims", { of: set.name }) : null,
    Number(state.zoom || 1) > 1 && set.kind !== "x" ? ask("dots", { of: set.name }).catch(() => null) : null,
  ]);
  const found = claims && claims.claims.find((/** @type {any} */ c) => c.claim === state.claim);
  const marked = found && { ...found, marks: { for: new Set(found.marks.for), against: new Set(found.marks.against) } };
  const reading = element("p", { class: "reading", "aria-live": "polite" },
    `${counted(layout.shown.length, "setting")} shown. Point at a cell, or move with the arrow keys; ` +
    "Enter opens it, P pins it for a comparison.");
  const panels = element("div", { class: "panels" });
  const legend = element("div", { class: "legend" });
  /** @type {{value: any}} */
  const now = { value };
  const commands = element("div", {});
  const draw = () => {
    drawMap(set, layout, now.value, marked, dots, panels, legend, reading);
    setTimeout(() => commands.replaceChildren(commandBox(mapCommands(set, layout, now.value)))); // when the address has the thresholds
  };
  const parts = [
    setHead(set),
    mapControls(set, layout, name),
    ...[...layout.remarks, ...(value.remarks || [])].map((text) => element("p", { class: "soft" }, text)),
    name === "classes" ? await thresholds(set, value, now, draw) : null,
    legend, panels, reading, pinsBox(set),
    element("div", { class: "buttons" },
      element("button", { type: "button", onclick: () => saveMap(set, layout, now.value) }, "CSV"),
      element("button", { type: "button", onclick: () => savePicture(set, layout, now.value, panels, legendOf(layout, now.value, marked, dots), "svg") }, "SVG"),
      element("button", { type: "button", onclick: () => savePicture(set, layout, now.value, panels, legendOf(layout, now.value, marked, dots), "png") }, "PNG")),
    commands,
  ];
  draw();
  return parts;
}

/** Return the controls of the map. @param {any} set @param {Layout} layout @param {string} name */
function mapControls(set, layout, name) {
  /** @type {[string, string][]} */
  const fields = set.fields.map((/** @type {Field} */ f) => [f.name, f.label === f.name ? f.name : `${f.label} (${f.name})`]);
  const panels = layout.panels.map((field) => field.name);
  const free = fields.filter(([field]) => !panels.includes(field) &&
    field !== (layout.x && layout.x.name) && field !== (layout.y && layout.y.name));
  const where = (/** @type {string} */ field, /** @type {string} */ text) => {
    const next = { ...state.where };
    if (text) next[field] = text; else delete next[field];
    go({ where: next });
  };
  const filters = new Set([...panels, ...layout.fixed.map(([field]) => field.name)]);
  return element("div", { class: "controls" },
    choice("Shows", set.values.map((/** @type {string} */ v) => [v, valueTitle(v)]), name,
      (value) => go({ value, fitted: "", solved: "" })),
    choice("Across", fields, layout.x ? layout.x.name : "", (x) =>
      go({ x, y: layout.y && layout.y.name === x ? (layout.x ? layout.x.name : "") : state.y })),
    choice("Down", fields, layout.y ? layout.y.name : "", (y) =>
      go({ y, x: layout.x && layout.x.name === y ? (layout.y ? layout.y.name : "") : state.x })),
    free.length ? choice("Panels by", [["", panels.length ? "add …" : "none"], ...free], "", (field) =>
      field && go({ panels: [...panels, field].join(",") })) : null,
    [...filters].map((field) => {
      const of = /** @type {Field} */ (fieldOf(set, field));
      const fixed = layout.fixed.find(([other]) => other.name === field);
      /** @type {[string, string][]} */
      const levels = of.levels.map((text) => [text, text]);
      return choice(of.label, [["", "a panel for each"], ...levels],
        fixed ? of.levels[fixed[1]] : "", (text) => where(field, text));
    }),
    free.length ? choice("Only", [["", "all runs"], ...free], "", (field) =>
      field && where(field, /** @type {Field} */ (fieldOf(set, field)).levels[0])) : null,
    choice("Size", ZOOMS.map((z) => [z === "1" ? "" : z, `${Number(z) * 100} %`]), state.zoom,
      (zoom) => go({ zoom }, "replace")),
    set.claim_names.length ? choice("Marks", [["", "no claim"], ...set.claim_names.map(
      (/** @type {any} */ c) => [c.name, `(${c.name}) ${c.text.slice(0, 60)}`])], state.claim,
      (claim) => go({ claim }, "replace")) : null,
    Object.keys(state.where).length || state.x || state.y || state.panels
      ? element("button", { type: "button",
        onclick: () => go({ x: "", y: "", panels: "", where: {} }) }, "As at first") : null);
}

/** Return a value's name for a reader. @param {string} name */
function valueTitle(name) {
  const known = { solved: "share solved", time: "median time to success",
    classes: "outcome classes (sliders)", grokking_delay: "grokking delay (median)" };
  return /** @type {any} */ (known)[name] || `${name} at the end`;
}

/**
 * Draw all panels anew.
 * @param {any} set @param {Layout} layout @param {any} value @param {any} marked @param {any} dots
 * @param {Element} place @param {Element} legend @param {Element} reading
 */
function drawMap(set, layout, value, marked, dots, place, legend, reading) {
  const focused = document.activeElement && document.activeElement.getAttribute("data-id");
  const scale = value.kind === "classes" ? null : scaleOf(value, layout.shown);
  const size = cellSize(layout);
  const pictures = layout.parts.map((part) =>
    element("figure", { class: "panel" },
      part.title ? element("figcaption", {}, part.title) : null,
      panelPicture(set, layout, part, value, scale, size, marked, dots, reading)));
  place.replaceChildren(...pictures);
  if (!pictures.length) place.replaceChildren(element("p", {}, "There are no runs to show yet."));
  legend.replaceChildren(...legendParts(legendOf(layout, value, marked, dots)));
  const again = cellOf(place, focused || "");
  if (again) focusCell(again);
}

/** Return the legend of the map. @param {Layout} layout @param {any} value @param {any} marked @param {any} dots */
function legendOf(layout, value, marked, dots) {
  const scale = value.kind === "classes" ? null : scaleOf(value, layout.shown);
  return legendItems(value, scale, marked, hasDots(dots, cellSize(layout)), layout.shown);
}

/** Return whether cells have a dot per run. @param {any} dots @param {number} size */
function hasDots(dots, size) {
  return Boolean(dots && size >= DOTS_FROM && dots.setting.length);
}

/** Return the side of a cell, in pixels. @param {Layout} layout */
function cellSize(layout) {
  const zoom = Number(state.zoom || 1);
  const room = Math.min(document.body.clientWidth, 1400) - 160;
  // Many panels stand beside each other, rather than each on a screen of its own.
  const beside = room < 700 || layout.parts.length < 3 ? 1 : layout.parts.length > 12 ? 3 : 2;
  const fit = Math.floor((room / beside - (beside > 1 ? 100 : 0)) / Math.max(layout.columns.length, 1));
  return Math.max(6, Math.round(Math.max(Math.min(fit, layout.columns.length > 6 ? 46 : 60), layout.parts.length > 6 ? 16 : 22) * zoom));
}

/** @param {any} set @param {Layout} layout @param {Panel} part @param {any} value @param {any} scale @param {number} size @param {any} marked @param {any} dots @param {Element} reading */
function panelPicture(set, layout, part, value, scale, size, marked, dots, reading) {
  const { x, y, columns, rows } = layout;
  const wide = Math.max(size, 8), texts = y ? y.levels : [""];
  const left = 14 + (y ? 22 : 0) + 6.4 * Math.max(...rows.map((code) => (texts[code] || "").length), 2);
  const labels = columns.map((code) => (x ? x.levels[code] : ""));
  const longest = Math.max(...labels.map((text) => text.length), 1);
  const turned = longest * 7 + 4 > wide;
  const below = (turned ? 10 + 5.2 * Math.min(longest, 24) : 18) + 20;
  const width = left + columns.length * wide + (turned ? 20 : 8), height = rows.length * wide + below + 6;
  const top = 4;
  const picture = shape("svg", { class: Number(state.zoom || 1) > 1 ? "map enlarged" : "map", role: "grid",
    width, height, style: `width: ${width}px`, viewBox: `0 0 ${width} ${height}`,
    "aria-label": `${value.label} over ${x ? x.label : ""} and ${y ? y.label : ""}${part.title ? ", " + part.title : ""}` },
    shape("defs", {}, hatching("undecided-light", "#fff"), hatching("undecided-dark", "#222")));
  const group = shape("g");
  let first = true;
  const texted = layout.shown.length <= MOST_TEXTS && wide >= 24;
  rows.forEach((row, down) => columns.forEach((column, across) => {
    const i = part.cells.get(`${row},${column}`);
    const cx = left + across * wide, cy = top + (rows.length - 1 - down) * wide;
    if (i === undefined) {
      group.append(shape("rect", { x: cx + 0.5, y: cy + 0.5, width: wide - 1, height: wide - 1,
        style: "fill: var(--none); opacity: .45" }));
      return;
    }
    const cell = cellPicture(set, layout, i, value, scale, cx, cy, wide, texted, marked, dots);
    cell.setAttribute("tabindex", first ? "0" : "-1");
    cell.setAttribute("data-place", `${down},${across}`);
    first = false;
    const id = set.counts.id[i];
    const tell = () => {
      reading.classList.add("told"); // from now on it stays in sight, however many panels there are
      reading.replaceChildren(settingTitle(set, i), ": ", cellText(set, i, value));
    };
    cell.addEventListener("pointerenter", tell);
    cell.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => pointTo(id, event));
    cell.addEventListener("pointerleave", () => pointFrom(id));
    cell.addEventListener("focus", () => {
      pointedAt = id;
      tell();
    });
    cell.addEventListener("click", () => go({ v: "setting", id, run: "" }));
    cell.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => moveIn(group, event, id, down, across));
    group.append(cell);
  }));
  picture.append(group);
  if (value.kind === "share" && x && x.numeric) picture.append(...frontier(layout, part, value, left, top, wide));
  rows.forEach((row, down) => picture.append(shape("text", { x: left - 6,
    y: top + (rows.length - 0.5 - down) * wide + 4, "text-anchor": "end" }, y ? y.levels[row] : "")));
  columns.forEach((_, across) => {
    const at = left + (across + 0.5) * wide, line = top + rows.length * wide + (turned ? 10 : 14);
    picture.append(shape("text", turned
      ? { transform: `translate(${at + 3} ${line}) rotate(-40)`, "text-anchor": "end" }
      : { x: at, y: line, "text-anchor": "middle" }, shortened(labels[across], 24)));
  });
  if (x) picture.append(shape("text", { class: "soft-text", x: left + columns.length * wide / 2,
    y: height - 6, "text-anchor": "middle" }, x.label));
  if (y) picture.append(shape("text", { class: "soft-text", "text-anchor": "middle",
    transform: `translate(12 ${top + rows.length * wide / 2}) rotate(-90)` }, y.label));
  return picture;
}

/** @param {string} text @param {number} most */
function shortened(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

/** @param {string} id @param {string} colour */
function hatching(id, colour) {
  return shape("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)" }, shape("line", { x1: 0, y1: 0, x2: 0, y2: 6, stroke: colour,
    "stroke-width": 1.6, opacity: 0.55 }));
}

/** @param {any} set @param {Layout} layout @param {number} i @param {any} value @param {any} scale @param {number} x @param {number} y @param {number} size @param {boolean} texted @param {any} marked @param {any} dots */
function cellPicture(set, layout, i, value, scale, x, y, size, texted, marked, dots) {
  const id = set.counts.id[i];
  const cell = shape("g", { class: `cell${pinned().includes(id) ? " pinned" : ""}`, role: "gridcell",
    "data-id": id, "aria-label": `${settingTitle(set, i)}: ${cellText(set, i, value)}` });
  const box = { x: x + 0.5, y: y + 0.5, width: size - 1, height: size - 1 };
  let ink = "#222";
  if (value.kind === "classes") {
    const n = value.counts.reduce((/** @type {number} */ sum, /** @type {number[]} */ c) => sum + c[i], 0);
    cell.append(shape("rect", { ...box, style: "fill: var(--none)" }));
    let at = box.x;
    value.counts.forEach((/** @type {number[]} */ count, /** @type {number} */ kind) => {
      if (!count[i]) return;
      const wide = box.width * count[i] / n;
      const part = { x: at, y: box.y, width: wide, height: box.height };
      cell.append(shape("rect", { ...part, fill: CLASS_COLOURS[kind] }));
      if (kind === UNKNOWN) cell.append(shape("rect", { ...part, fill: "url(#undecided-dark)" }));
      at += wide;
    });
  } else {
    const v = num(value.values[i]), place = scale.of(v);
    const colour = Number.isFinite(v) ? shade(place) : Number.isNaN(v) ? "var(--none)" : "#9a9aa2";
    ink = Number.isNaN(v) ? "var(--soft)" : Number.isFinite(v) && place > 0.55 ? "#222" : "#fff";
    cell.append(shape("rect", { ...box, style: `fill: ${colour}` }));
    if (isUndecided(value, i) || isFew(value, i)) {
      cell.append(shape("rect", { ...box, fill: `url(#undecided-${ink === "#fff" ? "light" : "dark"})` }));
    }
  }
  const dotted = hasDots(dots, size);
  if (dotted) cell.append(...dotsIn(set, dots, i, x, y, size, ink));
  if (texted && value.kind !== "classes") {
    const v = num(value.values[i]);
    const text = value.kind === "share" ? `${Math.round(100 * v)}` : v === Infinity ? "∞" : written(v, value.steps);
    cell.append(shape("text", { x: x + size / 2, y: y + (dotted ? 13 : size / 2 + 4), "text-anchor": "middle",
      style: `fill: ${ink}; font-size: ${Math.min(11, 1.9 * size / Math.max(text.length, 2))}px` }, text));
  }
  const side = marked && (marked.marks.for.has(i) ? "for" : marked.marks.against.has(i) ? "against" : "");
  if (side) {
    const s = Math.max(4, size / 6);
    const [a, b] = side === "for" ? [y + 2 + s, y + 2] : [y + 2, y + 2 + s];
    cell.append(shape("path", { d: `M${x + 2} ${a} L${x + 2 + 2 * s} ${a} L${x + 2 + s} ${b} Z`,
      fill: side === "for" ? "#56b4e9" : "#ff7f2a", stroke: "#fff", "stroke-width": 0.8 }));
  }
  cell.append(shape("rect", { ...box, class: "edge" }));
  return cell;
}

/** Draw the runs of a cell as dots: full if solved, else a ring, a cross if diverged. @param {any} set @param {any} dots @param {number} i @param {number} x @param {number} y @param {number} size @param {string} ink */
function dotsIn(set, dots, i, x, y, size, ink) {
  dots.by ||= groupDots(dots);
  const runs = dots.by.get(i) || [];
  const side = Math.ceil(Math.sqrt(runs.length)), step = (size - 22) / Math.max(side, 1);
  const radius = Math.min(Math.max(step / 2.6, 0.8), 5);
  return runs.map((/** @type {number} */ run, /** @type {number} */ at) => {
    const cx = x + 8 + (at % side + 0.5) * (size - 16) / side, cy = y + 18 + (Math.floor(at / side) + 0.5) * step;
    const kind = dots.outcome[run];
    const said = `seed ${dots.seed[run]}: ${["solved", "not solved", "diverged"][kind]}`;
    return kind === 2
      ? shape("path", { d: `M${cx - radius} ${cy - radius}l${2 * radius} ${2 * radius}m0 ${-2 * radius}l${-2 * radius} ${2 * radius}`,
        stroke: ink, fill: "none" }, shape("title", {}, said))
      : shape("circle", { cx, cy, r: radius, stroke: ink, "stroke-width": 0.9,
        fill: kind === 0 ? ink : "none" }, shape("title", {}, said));
  });
}

/** @param {any} dots @returns {Map<number, number[]>} */
function groupDots(dots) {
  const by = new Map();
  dots.setting.forEach((/** @type {number} */ setting, /** @type {number} */ run) => {
    if (!by.has(setting)) by.set(setting, []);
    by.get(setting).push(run);
  });
  return by;
}

/** Return whether the interval leaves open on which side of ½ success lies. @param {any} value @param {number} i */
function isUndecided(value, i) {
  return value.kind === "share" && num(value.low[i]) < 0.5 && num(value.high[i]) > 0.5;
}

/** Return whether a median has too few runs for an interval. @param {any} value @param {number} i */
function isFew(value, i) {
  return value.kind === "median" && !Number.isNaN(num(value.values[i])) && Number.isNaN(num(value.low[i]));
}

/** Return what a cell says, in words. @param {any} set @param {number} i @param {any} value */
function cellText(set, i, value) {
  const n = set.counts.n[i];
  const lost = set.counts.diverged[i] ? `, ${set.counts.diverged[i]} diverged` : "";
  if (value.kind === "classes") {
    return value.names.map((/** @type {string} */ name, /** @type {number} */ k) => `${value.counts[k][i]} ${name}`)
      .filter((/** @type {string} */ _, /** @type {number} */ k) => k < DIVERGED || value.counts[k][i]).join(", ") + `; n = ${n}`;
  }
  const ends = [num(value.low[i]), num(value.high[i])];
  if (value.kind === "share") {
    const [low, high] = ends.map((end) => Math.round(100 * end));
    return `${Math.round(100 * num(value.values[i]))} % solved [${low}, ${high}], n = ${n}${lost}` +
      (isUndecided(value, i) ? "; undecided, the interval holds ½" : "");
  }
  // A median is over the runs of which the value is defined, such as the delay of one that had fitted.
  const defined = value.n[i];
  if (!defined) return `${value.label}: not defined for any of ${n} runs${lost}`;
  const interval = ends.some(Number.isNaN) ? "no interval of so few" : `[${ends.map((e) => written(e, value.steps)).join(", ")}]`;
  return `${value.label} ${written(num(value.values[i]), value.steps)} ${interval}, n = ${defined}${defined < n ? ` of ${n} runs, not defined for the others` : ""}${lost}`;
}

/** Draw the frontier: the first place across at which half of the runs succeed; nothing for a row all on one side of it. @param {Layout} layout @param {Panel} part @param {any} value @param {number} left @param {number} top @param {number} size */
function frontier(layout, part, value, left, top, size) {
  const { rows, columns } = layout;
  const first = rows.map((row) => {
    const at = columns.findIndex((column) => {
      const i = part.cells.get(`${row},${column}`);
      return i !== undefined && num(value.values[i]) >= 0.5;
    });
    const below = columns.slice(0, Math.max(at, 0)).some((column) => part.cells.has(`${row},${column}`));
    return below ? at : -1;
  });
  let path = "";
  first.forEach((at, down) => {
    if (at < 0) return;
    const x = left + at * size, low = top + (rows.length - down) * size;
    path += `${down && first[down - 1] >= 0 ? "L" : "M"}${x} ${low}L${x} ${low - size}`;
  });
  if (!path) return [];
  return [["#fff", 4.2], ["#d55e00", 2.2]].map(([stroke, width]) =>
    shape("path", { d: path, fill: "none", stroke, "stroke-width": width, "pointer-events": "none" }));
}
