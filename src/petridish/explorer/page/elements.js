"use strict";
// Elements of the page. Text of a store is put in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element; `on…` attributes are handlers, null and false are left out.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children
 * @returns {any}
 */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Make a part of a picture. @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children @returns {any} */
function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** @param {Element} made @param {Record<string, any>} attributes @param {any[]} children */
function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, String(value));
    }
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
  return made;
}

/**
 * Make a choice of one of several. @param {string} label @param {[string, string][]} options
 * value and text @param {string} chosen @param {(value: string) => void} change
 */
function choice(label, options, chosen, change) {
  const list = element("select", {
    "data-key": label,
    onchange: (/** @type {any} */ event) => change(event.target.value),
  }, options.map(([value, text]) =>
    element("option", { value, selected: value === chosen }, text)));
  return element("label", {}, label, list);
}

/** Make a table; one that `stacks` becomes a list on a narrow screen. @param {string[]} head @param {any[][]} rows @param {(row: number) => Record<string, any>} [of] @param {boolean} [stacks] */
function table(head, rows, of = () => ({}), stacks = false) {
  return element("div", { class: stacks ? "scroll stacks" : "scroll", tabindex: 0, role: "region", "aria-label": "table" },
    element("table", {},
      head.length ? element("thead", {}, element("tr", {}, head.map((name) => element("th", {}, name)))) : null,
      element("tbody", {}, rows.map((row, place) =>
        element("tr", of(place), row.map((value, at) =>
          element("td", { ...(typeof value === "number" ? { class: "number" } : {}), "data-name": stacks ? head[at] : null,
            "data-empty": stacks && value === "" }, value)))))));
}

/** Write a number by a few digits. @param {number} value @param {boolean} [steps] */
function written(value, steps = false) {
  if (Number.isNaN(value)) return "–";
  if (value === Infinity) return steps ? "not reached" : "∞";
  if (value === -Infinity) return "−∞";
  if (steps) return value >= 10000 ? `${Number((value / 1000).toPrecision(3))}k` : `${Math.round(value)}`;
  return String(Number(value.toPrecision(3)));
}

/** Save something as a file. @param {string} name @param {Blob} content */
function download(name, content) {
  const address = URL.createObjectURL(content);
  const leading = element("a", { href: address, download: name });
  document.body.append(leading);
  leading.click();
  leading.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Return a text as the name of a file. @param {string} text */
function fileName(text) {
  return text.replace(/[^\p{L}\p{N}.()-]+/gu, "_").slice(0, 120);
}

/** Write rows as CSV. @param {any[][]} rows */
function csv(rows) {
  const cell = (/** @type {any} */ value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return new Blob([rows.map((row) => row.map(cell).join(",")).join("\n") + "\n"],
    { type: "text/csv;charset=utf-8" });
}

/** Return the badge of a verdict. @param {string} word @param {string} [before] */
function badge(word, before = "") {
  const kind = word.startsWith("not") ? "not" : word.split(" ")[0];
  return element("span", { class: `verdict ${kind}` }, before + word);
}

/** Return a line that says what went wrong. @param {any} error */
function warning(error) {
  return element("p", { class: "warning", role: "alert" }, error.message || String(error));
}

/** Return a number with its unit. @param {number} n @param {string} what */
function counted(n, what) {
  return `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
}
