"use strict";
// What the page shows, kept in its address: a link or a reload shows the same.

/**
 * @typedef {Object} State
 * @property {string} v  the view: home, map, setting, run, calculator, claims
 * @property {string} of  the set of runs
 * @property {string} x  the axis across; "" for the usual one
 * @property {string} y  the axis down
 * @property {string} panels  fields with a panel per value, by commas; "" for the usual ones
 * @property {Record<string, string>} where  fields of which one value is shown
 * @property {string} value  what a cell shows
 * @property {string} fitted  the threshold of the training error, if it was moved
 * @property {string} solved  the threshold of the test error, if it was moved
 * @property {string} zoom  the size of cells, 1 for the usual
 * @property {string} id  the setting that is looked at
 * @property {string} run  its run, as seed.restart
 * @property {string} pins  pinned settings, by commas
 * @property {string} curve  the curve that is drawn
 * @property {string} axes  "log" axes of the curves: "x", "y", "xy" or "-"
 * @property {string} claim  the claim that is marked on the map
 * @property {string} what  the array that is pictured
 * @property {string} at  its slice
 * @property {string} target  of the calculator
 * @property {string} m  limits of the calculator
 * @property {string} r
 * @property {string} steps
 * @property {string} restarts
 * @property {string} compute
 */

/** @type {State} */
const NOTHING = {
  v: "home", of: "", x: "", y: "", panels: "", where: {}, value: "", fitted: "", solved: "",
  zoom: "", id: "", run: "", pins: "", curve: "", axes: "", claim: "", what: "", at: "",
  target: "", m: "", r: "", steps: "", restarts: "", compute: "",
};
const FILTER = "is.";

/** Return what an address says. @param {string} hash @returns {State} */
function readState(hash) {
  const found = { ...NOTHING, where: /** @type {Record<string, string>} */ ({}) };
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (name.startsWith(FILTER)) found.where[name.slice(FILTER.length)] = text;
    else if (name in NOTHING && name !== "where") /** @type {any} */ (found)[name] = text;
  }
  return found;
}

/** Return the address of a state. @param {State} wanted */
function writeState(wanted) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(wanted)) {
    if (typeof value !== "string") continue;
    if (value !== /** @type {any} */ (NOTHING)[name]) parts.set(name, value);
  }
  for (const [name, value] of Object.entries(wanted.where)) parts.set(FILTER + name, value);
  return "#" + parts.toString();
}

let state = readState(location.hash);

/** Return the address after some changes. @param {Partial<State>} changes */
function link(changes) {
  return writeState({ ...state, ...changes });
}

/** Show something else. @param {Partial<State>} changes @param {"push" | "replace"} [how] */
function go(changes, how = "push") {
  const address = link(changes);
  if (how === "replace") {
    history.replaceState(null, "", address);
    state = readState(location.hash);
    render();
  } else if (address === location.hash) render();
  else location.hash = address;
}

/** Return the pinned settings. @returns {string[]} */
function pinned() {
  return state.pins ? state.pins.split(",") : [];
}

/** Pin a setting, or let go of it; of two pins the older one goes. @param {string} id */
function togglePin(id) {
  const now = pinned();
  const next = now.includes(id) ? now.filter((each) => each !== id) : [...now, id].slice(-2);
  go({ pins: next.join(",") }, "replace");
}
