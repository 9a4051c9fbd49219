"use strict";
// The legend of a map: the same items above it on the page and in the pictures saved of it.

/** @typedef {{mark: any[], wide: number, before: string, text: string, verdict?: string}} LegendItem */

const SWATCH = 14; // pixels

/** @param {any[]} mark @param {string} text @param {number} [wide] @param {string} [before] @returns {LegendItem} */
function legendItem(mark, text, wide = SWATCH, before = "") {
  return { mark, wide: mark.length ? wide : 0, before, text };
}

/** Return a square, hatched if asked for. @param {string} fill @param {boolean} [hatched] */
function square(fill, hatched = false) {
  const lines = "M0 9L9 0M3 14L14 3M9 14L14 9";
  return [shape("rect", { width: SWATCH, height: SWATCH, rx: 2, style: `fill: ${fill}` }),
    ...(hatched ? [shape("path", { d: lines, style: "stroke: #555; stroke-width: 1.6; fill: none" })] : [])];
}

/** Return the colours from dark to light. @param {number} wide */
function ramp(wide) {
  const count = 32, each = wide / count;
  return Array.from({ length: count }, (_, at) =>
    shape("rect", { x: at * each, width: each + 0.5, height: SWATCH, style: `fill: ${shade(at / (count - 1))}` }));
}

/**
 * Return what a map's marks mean.
 * @param {any} value @param {any} scale @param {any} marked @param {boolean} dotted @param {number[]} shown
 * @returns {LegendItem[]}
 */
function legendItems(value, scale, marked, dotted, shown) {
  const items = [];
  if (value.kind === "classes") {
    value.names.forEach((/** @type {string} */ name, /** @type {number} */ at) => {
      const some = shown.some((i) => value.counts[at][i]);
      if (at < DIVERGED || some) items.push(legendItem(square(CLASS_COLOURS[at], at === UNKNOWN), name));
    });
  } else {
    const [low, high] = scale.ends;
    const share = value.kind === "share";
    const ends = share ? ["0 %", "100 %"] : [written(low, value.steps), written(high, value.steps)];
    items.push(legendItem(ramp(128), `${ends[1]}${scale.log ? " (logarithmic)" : ""}`, 128, `${value.label}: ${ends[0]}`));
    items.push(legendItem([], value.interval));
    if (share) {
      items.push(legendItem(square("#b5b5b5", true), "undecided: the interval holds ½"));
      const line = shape("rect", { y: 5, width: SWATCH, height: 4, style: "fill: #d55e00" });
      items.push(legendItem([line], "frontier: half of the runs succeed (no line where a row does not cross it)"));
    } else {
      const numbers = shown.map((i) => num(value.values[i]));
      if (shown.some((i) => isFew(value, i))) items.push(legendItem(square("#b5b5b5", true), "too few runs for an interval"));
      if (numbers.some((v) => v === Infinity)) items.push(legendItem(square("#9a9aa2"), "∞ not reached by half of the runs"));
      if (numbers.some(Number.isNaN)) items.push(legendItem(square("var(--none)"), "– not defined for any run"));
    }
  }
  if (dotted) items.push(...dotItems());
  if (marked) items.push({ ...legendItem([], `▲ stratum for, ▼ against claim (${marked.claim}), each judged alone:`), verdict: marked.word });
  return items;
}

/** Return what the dots of an enlarged map mean. */
function dotItems() {
  const style = "stroke: var(--ink); stroke-width: 1.2; fill: none";
  return [
    legendItem([shape("circle", { cx: 7, cy: 7, r: 4.5, style: "fill: var(--ink)" })], "one run, solved"),
    legendItem([shape("circle", { cx: 7, cy: 7, r: 4.5, style })], "not solved"),
    legendItem([shape("path", { d: "M3 3L11 11M11 3L3 11", style })], "diverged"),
  ];
}

/** Show the legend on the page. @param {LegendItem[]} items */
function legendParts(items) {
  return items.map((item) => element("span", {}, item.before, item.before ? " " : "",
    item.wide ? shape("svg", { width: item.wide, height: SWATCH, "aria-hidden": "true" }, item.mark) : null, " ", item.text,
    ...(item.verdict ? [" ", badge(item.verdict)] : [])));
}

/** Draw the legend into a picture, on lines of at most some width. @param {LegendItem[]} items @param {number} most */
function legendPicture(items, most) {
  const group = shape("g");
  const pen = element("canvas").getContext("2d");
  pen.font = "11px sans-serif";
  let x = 4, y = 0;
  for (const item of items) {
    const text = item.verdict ? `${item.text} ${item.verdict}` : item.text;
    const before = item.before ? pen.measureText(item.before).width + 5 : 0;
    const wide = before + item.wide + 5 + pen.measureText(text).width + 16;
    if (x > 4 && x + wide > most) [x, y] = [4, y + 20];
    if (item.before) group.append(shape("text", { x, y: y + 11 }, item.before));
    if (item.wide) group.append(shape("g", { transform: `translate(${x + before} ${y})` }, item.mark.map((part) => part.cloneNode(true))));
    group.append(shape("text", { x: x + before + (item.wide ? item.wide + 5 : 0), y: y + 11 }, text));
    x += wide;
  }
  return { group, height: y + 20 };
}
