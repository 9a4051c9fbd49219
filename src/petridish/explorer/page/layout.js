"use strict";
// Which setting stands where on a map. Two settings never share a cell.

const MOST_PANELS = 24;

/**
 * @typedef {{name: string, label: string, numeric: boolean, levels: string[], numbers: any[] | null,
 *   set: string[], settable: boolean[], python: string[], codes: number[]}} Field
 * @typedef {{title: string, cells: Map<string, number>}} Panel
 * @typedef {{x: Field | null, y: Field | null, panels: Field[], columns: number[], rows: number[],
 *   parts: Panel[], fixed: [Field, number][], remarks: string[], shown: number[]}} Layout
 */

/** Return a field by its name. @param {any} set @param {string | null} name @returns {Field | null} */
function fieldOf(set, name) {
  return set.fields.find((/** @type {Field} */ field) => field.name === name) || null;
}

/**
 * Lay the settings of a set out over the axes that are asked for. Fields that tell settings apart
 * and were given no place become panels; of too many panels the first values are shown.
 * @param {any} set @param {State} asked @returns {Layout}
 */
function layOut(set, asked) {
  const remarks = [];
  /** @type {[Field, number][]} */
  const fixed = [];
  for (const [name, text] of Object.entries(asked.where)) {
    const field = fieldOf(set, name);
    const code = field ? field.levels.indexOf(text) : -1;
    if (field && code >= 0) fixed.push([field, code]);
    else remarks.push(`No run here has ${name} = ${text}.`);
  }
  const chosen = (/** @type {Field | null} */ field) =>
    field && !fixed.some(([other]) => other === field) ? field : null;
  const wanted = asked.panels ? asked.panels.split(",").filter((name) => name !== "-") : [];
  let x = chosen(fieldOf(set, asked.x || set.axes.columns));
  let y = chosen(fieldOf(set, asked.y || set.axes.rows));
  if (x && x === y) {
    if (asked.x) y = chosen(fieldOf(set, set.axes.columns));
    else x = chosen(fieldOf(set, set.axes.rows));
    if (x === y) y = null;
  }
  // Where an axis shows one value alone, what would be a panel takes its place.
  const spare = () => set.axes.panels.map((/** @type {string} */ name) => chosen(fieldOf(set, name)))
    .find((/** @type {Field | null} */ field) => field && field !== x && field !== y && !wanted.includes(field.name)) || null;
  if (!x) x = spare();
  if (!y && set.axes.rows) y = spare();
  if (!x && y) [x, y] = [y, null];
  const panels = wanted.map((name) => chosen(fieldOf(set, name)))
    .filter((field) => field && field !== x && field !== y);
  const all = set.counts.id.map((/** @type {string} */ _, /** @type {number} */ i) => i);
  let shown = all.filter((/** @type {number} */ i) =>
    fixed.every(([field, code]) => field.codes[i] === code));
  const usual = [set.axes.columns, set.axes.rows, ...set.axes.panels];
  const order = [...usual.map((name) => fieldOf(set, name)), ...set.fields]
    .filter((field) => field && !fixed.some(([other]) => other === field));
  for (const field of order) {
    const used = [x, y, ...panels].filter((each) => each !== null);
    if (used.includes(field) || !collide(shown, used)) continue;
    if (distinct(shown, [...used, field]) > distinct(shown, used)) panels.push(field);
  }
  while (panels.length && distinct(shown, panels) > MOST_PANELS) {
    const field = /** @type {Field} */ (panels.pop());
    const code = field.codes[shown[0]];
    fixed.push([field, code]);
    shown = shown.filter((/** @type {number} */ i) => field.codes[i] === code);
    remarks.push(`More than ${MOST_PANELS} panels: ${field.label} ${field.levels[code]} is shown; ` +
      "choose another of it below.");
  }
  return { x, y, panels: /** @type {Field[]} */ (panels), fixed, remarks, shown,
    columns: levelsOf(shown, x), rows: levelsOf(shown, y), parts: partsOf(shown, x, y, panels) };
}

/** Return the number of distinct values. @param {number[]} shown @param {(Field | null)[]} fields */
function distinct(shown, fields) {
  return new Set(shown.map((i) => fields.map((field) => field && field.codes[i]).join())).size;
}

/** @param {number[]} shown @param {(Field | null)[]} fields */
function collide(shown, fields) {
  return distinct(shown, fields) < shown.length;
}

/** Return the values of an axis that occur, in order. @param {number[]} shown @param {Field | null} field */
function levelsOf(shown, field) {
  if (!field) return [0];
  return [...new Set(shown.map((i) => field.codes[i]))].sort((a, b) => a - b);
}

/** @param {number[]} shown @param {Field | null} x @param {Field | null} y @param {any[]} panels @returns {Panel[]} */
function partsOf(shown, x, y, panels) {
  /** @type {Map<string, Panel & {order: number[]}>} */
  const found = new Map();
  for (const i of shown) {
    const codes = panels.map((field) => field.codes[i]);
    const name = codes.join();
    if (!found.has(name)) {
      const title = panels.map((field) => `${field.label} ${field.levels[field.codes[i]]}`).join(", ");
      found.set(name, { title, cells: new Map(), order: codes });
    }
    found.get(name)?.cells.set(`${y ? y.codes[i] : 0},${x ? x.codes[i] : 0}`, i);
  }
  return [...found.values()].sort((a, b) => {
    const place = a.order.findIndex((code, at) => code !== b.order[at]);
    return place < 0 ? 0 : a.order[place] - b.order[place];
  });
}

/** Return what tells a setting apart, as text. @param {any} set @param {number} i */
function settingTitle(set, i) {
  const names = [set.axes.rows, set.axes.columns, ...set.axes.panels].filter((name) => name);
  const fields = names.map((name) => /** @type {Field} */ (fieldOf(set, name)));
  return fields.map((field) => `${field.label} ${field.levels[field.codes[i]]}`).join(", ") || "all runs";
}
