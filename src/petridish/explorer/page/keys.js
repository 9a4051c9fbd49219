"use strict";
// Which cell of a map is pointed at or focused, and the keys that move, open and pin.

let pointedAt = ""; // the setting that the mouse or the keyboard points at
let mouseAt = ""; // where the mouse was moved to

/** Point at a setting by the mouse; one that rests while the page is drawn anew points at nothing. @param {string} id @param {PointerEvent} event */
function pointTo(id, event) {
  const place = `${event.clientX},${event.clientY}`;
  if (place !== mouseAt) [mouseAt, pointedAt] = [place, id];
}

/** Point at a setting no longer. @param {string} id */
function pointFrom(id) {
  if (pointedAt === id) pointedAt = "";
}

/** Focus a cell, which is then the one of its panel that the tabulator reaches. @param {any} cell */
function focusCell(cell) {
  for (const other of cell.parentNode.querySelectorAll('[tabindex="0"]')) other.setAttribute("tabindex", "-1");
  cell.setAttribute("tabindex", "0");
  cell.focus();
}

/** Return the cell of a setting, if the map shows it. @param {ParentNode} place @param {string} id */
function cellOf(place, id) {
  return id ? place.querySelector(`.map .cell[data-id="${CSS.escape(id)}"]`) : null;
}

/** Pin the setting that is pointed at, or looked at, by a key. @param {KeyboardEvent} event */
function pinByKey(event) {
  const typed = event.target instanceof HTMLElement && event.target.closest("input, select, textarea");
  if (event.key.toLowerCase() !== "p" || event.ctrlKey || event.metaKey || event.altKey || typed) return;
  if (state.v === "setting" && state.id) togglePin(state.id);
  else if (state.v === "map" && pointedAt) togglePin(pointedAt);
}

/** Move the focus with the arrow keys. @param {any} group @param {KeyboardEvent} event @param {string} id @param {number} down @param {number} across */
function moveIn(group, event, id, down, across) {
  const steps = /** @type {Record<string, number[]>} */ ({ ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] });
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    go({ v: "setting", id, run: "" });
  } else if (event.key in steps) {
    event.preventDefault();
    const [dy, dx] = steps[event.key];
    for (let far = 1; far < 200; far++) {
      const next = group.querySelector(`[data-place="${down + far * dy},${across + far * dx}"]`);
      if (!next) continue;
      focusCell(next);
      return;
    }
  }
}
