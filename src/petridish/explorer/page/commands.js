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

/**
 * Return what `--set` holds of some fields at values, and the rest as conditions in Python.
 * @param {[Field, number][]} held fields with the places of their values @param {boolean} set whether `--set` is taken
 */
function heldBy(held, set) {
  const settings = held.filter(([field, code]) => set && field.settable[code]).map(([field, code]) => `${field.name}=${field.set[code]}`);
  const conditions = held.filter(([field, code]) => !set || !field.settable[code])
    .map(([field, code]) => field.python[code] || `pl.col(${pythonText(field.name)}) == ${field.numeric ? field.numbers?.[code] : pythonText(field.set[code])}`);
  return { settings, conditions };
}

/**
 * Return the lines of Python that give a table of the runs, and what it is called.
 * @param {any} set @param {string[]} [settings] those that `--set` takes @param {string[]} [conditions] in Python
 * @param {string[]} columns columns of curves that it must have
 */
function tableInPython(set, settings = [], conditions = [], columns = []) {
  const place = pythonText(set.place), read = `.read(${columns.length ? `columns=[${columns.map(pythonText).join(", ")}]` : ""}).table`;
  const lines = ["import polars as pl"].filter(() => conditions.length);
  if (set.kind === "record") {
    lines.push("from pathlib import Path", "from petridish.publish.records import read_record", `table = read_record(Path(${place}))`);
  } else if (set.named) {
    lines.unshift("import petridish");
    lines.push(runsInPython(set, settings), `table = ${columns.length ? `runs.sweep.among(runs.store${read})` : "runs.table"}`);
  } else if (set.asked) {
    lines.push("from pathlib import Path", "from petridish.publish.records import read_sweep", "from petridish.store import Store",
      "from petridish.store.requests import requests",
      `(asked,) = [each.own for each in requests(Path(${place})) if each.first == ${pythonText(set.asked)}]`,
      `table = read_sweep(asked.sweep).among(Store(${place})${read})`);
  } else lines.push("from petridish.store import Store", `table = Store(${place})${read}`);
  if (conditions.some((each) => each.includes('"arm"') || each.includes("'arm'"))) {
    lines.push("from petridish.sweeps import by_arm", "table = by_arm(table)");
  }
  if (conditions.length) lines.push(`table = table.filter(${conditions.join(", ")})`);
  return lines.join("\n");
}

/** @param {any} set @param {Layout} layout @param {any} value what the cells show @returns {[string, string][]} */
function mapCommands(set, layout, value) {
  const shown = [["rows", layout.y && layout.y.name], ["columns", layout.x && layout.x.name]].filter(([, field]) => field);
  const panels = layout.panels.map((field) => field.name), record = set.kind === "record";
  const { settings, conditions } = heldBy(layout.fixed, set.named && !record);
  if (value.kind === "classes") {
    const fields = [...shown.map(([, field]) => /** @type {string} */ (field)), ...panels];
    const chosen = (/** @type {"fitted" | "solved"} */ which, /** @type {number} */ usual) => Number(state[which]) || num(set.thresholds[which]) || usual;
    const by = set.curves ? `, fitted=${chosen("fitted", 0.01)}, solved=${chosen("solved", 0.1)}` : "";
    const columns = set.curves ? ["curve.step", "curve.train_error", "curve.test_error"] : [];
    return [["Python", `${tableInPython(set, settings, conditions, columns)}\nfrom petridish.rules.outcome_classes import class_counts\n` +
      `class_counts(table, [${fields.map(pythonText).join(", ")}]${by})`]];
  }
  const options = [...shown.map(([option, field]) => `--${option} ${word(/** @type {string} */ (field))}`),
    panels.length ? `--panels ${word(panels.join(","))}` : "", `--value ${word(value.value)}`].filter(Boolean).join(" ");
  const python = [`value=${pythonText(value.value)}`, ...shown.map(([option, field]) => `${option}=${pythonText(/** @type {string} */ (field))}`),
    panels.length ? `panels=[${panels.map(pythonText).join(", ")}]` : ""].filter(Boolean).join(", ");
  if (!set.named || record || conditions.length) {
    return [["Python", `${tableInPython(set, settings, conditions, value.columns)}\nfrom petridish.rules.outcome_table import outcome_table\noutcome_table(table, ${python}).frame`]];
  }
  return [
    ["Command line", `petridish run ${named(set, settings)}\npetridish figure ${named(set, settings)} ${options}`],
    ["Python", `import petridish\n${runsInPython(set, settings)}\nruns.outcomes(${python})`],
  ];
}

/** Return what tells a setting apart: its fields with the places of their values. @param {any} set @param {number} i @returns {[Field, number][]} */
function apart(set, i) {
  const names = [set.axes.rows, set.axes.columns, ...set.axes.panels].filter((name) => name);
  return names.map((name) => {
    const field = /** @type {Field} */ (fieldOf(set, name));
    return [field, field.codes[i]];
  });
}

/** @param {any} set @param {number} i @returns {[string, string][]} */
function settingCommands(set, i) {
  const { settings, conditions } = heldBy(apart(set, i), set.named && set.kind !== "record");
  const python = `${tableInPython(set, settings, conditions)}\ntable`;
  if (!set.named || set.kind === "record" || conditions.length) return [["Python", python]];
  return [["Command line", `petridish run ${named(set, settings)}`], ["Python", python]];
}

/** @param {any} set @param {number[]} pair two settings @returns {[string, string][]} */
function comparisonCommands(set, pair) {
  const both = pair.map((i) => heldBy(apart(set, i), false).conditions);
  const each = both.map((conditions) => conditions.length ? conditions.map((one) => `(${one})`).join(" & ") : "pl.lit(True)");
  return [["Python", `${tableInPython(set, [], [each.join(" | ")])}\ntable`]];
}

/** @param {any} set @param {number} i @param {any} run what is kept of it @param {string} seed @param {string} restart @returns {[string, string][]} */
function runCommands(set, i, run, seed, restart) {
  const key = Object.fromEntries(run.numbers).key;
  if (key && set.kind !== "record") {
    const kept = run.arrays.some((/** @type {any} */ each) => each.what.startsWith("weights."));
    return [["Python", `import petridish\ntrained = petridish.load("${key}", store=${pythonText(set.place)})${kept ? "" : "  # trains it again: its weights were not kept"}\ntrained.weights`]];
  }
  const conditions = [...heldBy(apart(set, i), false).conditions, `pl.col("seed") == ${seed}`, `pl.col("restart") == ${restart}`];
  return [["Python", `${tableInPython(set, [], conditions)}\ntable.to_dicts()`]];
}

/** @param {any} set @param {string} target @param {any[]} held fields with their values @returns {[string, string][]} */
function calculatorCommands(set, target, held) {
  const limits = RESOURCES.map(([name]) => [name, /** @type {any} */ (state)[name]]).filter(([, text]) => text);
  const have = limits.length ? `{${limits.map(([name, text]) => `"${name}": ${text}`).join(", ")}}` : "";
  const settings = held.filter((field) => field.set !== null).map((field) => `${field.name}=${field.set}`);
  const conditions = held.filter((field) => field.set === null).map((field) => field.python);
  if (!set.named || set.kind === "record" || conditions.length) {
    const found = `mixtures(table, target=${target})`;
    return [["Python", `${tableInPython(set, set.kind === "record" ? [] : settings, set.kind === "record" || !set.named ? held.map((field) => field.python) : conditions)}\n` +
      `from petridish.rules.mixtures import affordable, mixtures\n${have ? `affordable(${found}, ${have})` : found}`]];
  }
  return [
    ["Command line", `petridish frontier ${named(set, settings)} --target ${target}${have ? ` --have ${limits.map(([name, text]) => `${name}=${text}`).join(",")}` : ""}`],
    ["Python", `import petridish\n${runsInPython(set, settings)}\nruns.frontier(target=${target}${have ? `, have=${have}` : ""})`],
  ];
}

/** @param {any} set @returns {[string, string][]} */
function claimCommands(set) {
  if (!set.named || set.part) return [];
  return [["Command line", `petridish verdicts ${named(set, [])}`], ["Python", `import petridish\n${runsInPython(set, [])}\nruns.verdicts()`]];
}

/** Return a sentence on how runs get curves, where these have none. @param {any} set @param {string} what what curves give */
function curvesWanted(set, what) {
  if (!set.named || set.kind === "record") return `With Evaluation(curves=True) in the base of a sweep ${what}.`;
  return element("span", {}, "By ", element("code", {}, `petridish run ${named(set, ["evaluation.curves=true"])}`),
    `, which trains them again and takes about twice as long, ${what}.`);
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
