"use strict";
// The commands and the Python that make what is shown.

/** Return a text as one word of a shell. @param {string} text */
function word(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`;
}

/** Return a text as Python writes it. @param {string} text */
function pythonText(text) {
  return JSON.stringify(text);
}

/** Return what names the runs on the command line. @param {any} set @param {string[]} settings */
function named(set, settings) {
  const parts = [word(set.file || set.id)];
  if (!set.file) parts.push("--scale", word(set.scale));
  for (const text of [...set.settings, ...settings]) parts.push("--set", word(text));
  if (set.kind !== "record") parts.push("--store", word(set.place));
  return parts.join(" ");
}

/** Return the line of Python that gives the runs. @param {any} set @param {string[]} settings */
function runsInPython(set, settings) {
  const all = [...set.settings, ...settings];
  const scale = set.file ? "" : `, scale=${pythonText(set.scale)}`;
  const chosen = all.length ? `, settings=[${all.map(pythonText).join(", ")}]` : "";
  const store = set.kind === "record" ? "" : `, store=${pythonText(set.place)}`;
  return `runs = petridish.run(${pythonText(set.file || set.id)}${scale}${chosen}${store})`;
}

/** Return the lines that read the runs where no command names them. @param {any} set */
function tableInPython(set) {
  return `from petridish.store import Store\ntable = Store(${pythonText(set.place)}).read().table`;
}

/** @param {any} set @param {Layout} layout @param {string} value @returns {[string, string][]} */
function mapCommands(set, layout, value) {
  const shown = [["rows", layout.y && layout.y.name], ["columns", layout.x && layout.x.name]].filter(([, field]) => field);
  const panels = layout.panels.map((field) => field.name);
  const settings = layout.fixed.filter(([field]) => field.name !== "arm").map(([field, code]) => `${field.name}=${field.set[code]}`);
  const own = value !== "classes" && value !== "grokking delay";
  const options = [...shown.map(([option, field]) => `--${option} ${word(/** @type {string} */ (field))}`),
    panels.length ? `--panels ${word(panels.join(","))}` : "", own ? `--value ${word(value)}` : ""].filter(Boolean).join(" ");
  const python = [...(own ? [`value=${pythonText(value)}`] : []), ...shown.map(([option, field]) => `${option}=${pythonText(/** @type {string} */ (field))}`),
    panels.length ? `panels=[${panels.map(pythonText).join(", ")}]` : ""].filter(Boolean).join(", ");
  if (!set.named) return [["Python", `${tableInPython(set)}\nfrom petridish.rules.outcome_table import outcome_table\noutcome_table(table, ${python}).frame`]];
  const only = settings.length ? ` # of ${settings.join(" ")}` : "";
  return [
    ["Command line", `petridish run ${named(set, settings)}\npetridish figure ${named(set, settings)} ${options}`],
    ["Python", `import petridish\n${runsInPython(set, settings)}${only}\nruns.outcomes(${python})`],
  ];
}

/** @param {any} set @param {number} i @returns {[string, string][]} */
function settingCommands(set, i) {
  const names = [set.axes.rows, set.axes.columns, ...set.axes.panels].filter((name) => name && name !== "arm");
  const settings = names.map((name) => {
    const field = /** @type {Field} */ (fieldOf(set, name));
    return `${name}=${field.set[field.codes[i]]}`;
  });
  if (!set.named) return [["Python", tableInPython(set)]];
  return [["Command line", `petridish run ${named(set, settings)}`], ["Python", `import petridish\n${runsInPython(set, settings)}\nruns.table`]];
}

/** @param {any} set @param {string} target @returns {[string, string][]} */
function calculatorCommands(set, target) {
  if (!set.named) return [["Python", tableInPython(set)]];
  const have = RESOURCES.map(([name]) => [name, /** @type {any} */ (state)[name]]).filter(([, text]) => text).map(([name, text]) => `${name}=${text}`);
  return [
    ["Command line", `petridish frontier ${named(set, [])} --target ${target}${have.length ? ` --have ${have.join(",")}` : ""}`],
    ["Python", `import petridish\n${runsInPython(set, [])}\nruns.frontier(target=${target})`],
  ];
}

/** @param {any} set @returns {[string, string][]} */
function claimCommands(set) {
  if (!set.named) return [["Python", tableInPython(set)]];
  return [["Command line", `petridish verdicts ${named(set, [])}`], ["Python", `import petridish\n${runsInPython(set, [])}\nruns.verdicts()`]];
}

/** Return a box of commands that can be copied. @param {[string, string][]} commands */
function commandBox(commands) {
  return element("section", { class: "commands", "aria-label": "commands" }, commands.map(([title, text]) =>
    element("div", {}, element("p", { class: "soft" }, title), element("div", { class: "command" }, element("pre", {}, unbroken(text)),
      element("button", { type: "button", onclick: (/** @type {any} */ event) => copy(text, event.target) }, "Copy")))));
}

/** Return a text whose words are not broken, such as after the first hyphen of an option. @param {string} text */
function unbroken(text) {
  return text.split(/(\s+)/).map((word) => (word.trim() ? element("span", {}, word) : word));
}

/** Copy a text; where a page may not, select it. @param {string} text @param {HTMLElement} button */
async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    const block = /** @type {HTMLElement} */ (button.previousElementSibling);
    getSelection()?.selectAllChildren(block);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
