"use strict";
// One run: everything that is kept of it, weights and attention as pictures.

/** Return what an exported file holds of a run: its row in the table of its setting, and its curves. @param {any} setting @param {string} seed @param {string} restart */
function runInFile(setting, seed, restart) {
  const of = (/** @type {string} */ name) => setting.runs[setting.columns.indexOf(name)];
  const place = of("seed").findIndex((/** @type {any} */ each, /** @type {number} */ at) =>
    String(each) === seed && String(of("restart")[at]) === restart);
  if (place < 0) {
    throw new Error(`This file does not list a run of seed ${seed}, restart ${restart} in this setting. ` +
      "The live page may: open it by `petridish explore`.");
  }
  return { curves: setting.curves, arrays: [],
    numbers: setting.columns.map((/** @type {string} */ name, /** @type {number} */ at) => [name, setting.runs[at][place]]) };
}

/** Show a run. @param {any} set */
async function showRun(set) {
  const [seed, restart] = state.run.split(".");
  const asked = { of: set.name, id: state.id, seed, restart: restart || "0" };
  const i = set.counts.id.indexOf(state.id);
  const [live, setting] = await Promise.all([exported ? null : ask("run", asked), ask("setting", { of: set.name, id: state.id })]);
  const run = live || runInFile(setting, seed, asked.restart);
  const curves = element("div", { class: "chart", role: "img", "aria-label": "curves of this run" });
  const note = element("p", { class: "soft" });
  const drawn = run.curves.slice(0, 12);
  if (drawn.length) {
    later(async () => {
      const found = await Promise.all(drawn.map((/** @type {string} */ curve) => ask("curves", { of: set.name, id: state.id, curve })));
      const traces = found.flatMap((each, at) => each.runs
        .filter((/** @type {any} */ r) => r.seed === seed && String(r.restart) === asked.restart)
        .map((/** @type {any} */ r) => ({ x: r.step, y: r.value, mode: "lines", name: plain(drawn[at]), visible: at < 3 ? true : "legendonly" })));
      if (!traces.length) {
        curves.replaceChildren(element("p", { class: "soft" }, exported ? "This file holds the curves of other runs of the setting, and none of this one." : "This run has none of the curves of its setting."));
        return;
      }
      note.textContent = found.some((each) => each.thinned) ? `Curves are thinned to ${found.find((each) => each.thinned).thinned}.` : "";
      await chart(curves, traces, { x: "step", y: "value", logX: (state.axes || "x").includes("x"), logY: state.axes.includes("y"), title: `${set.name}-${state.run}` });
    }, curves);
  }
  return [
    setHead(set),
    element("h1", {}, `Seed ${seed}${asked.restart !== "0" ? `, restart ${asked.restart}` : ""}`),
    element("p", { class: "soft" }, i >= 0 ? settingTitle(set, i) : "", " · ", setting.text),
    element("p", {}, element("a", { href: link({ v: "setting", run: "", what: "", at: "" }) }, "← setting")),
    ...(drawn.length ? [curves, note] : [element("p", { class: "soft" }, exported ? "This file holds no curves of this run." : "This run kept no curves.")]),
    element("div", { class: "columns" },
      element("section", {}, element("h2", {}, "What is kept"),
        table([], run.numbers.map((/** @type {[string, any]} */ [name, value]) => [name, value === null ? "–" : String(value)]))),
      element("section", {}, element("h2", {}, "Arrays and weights"), ...await picturesBox(run, asked))),
    i >= 0 ? commandBox(runCommands(set, i, run, seed, asked.restart)) : null,
  ];
}

/** @param {any} run @param {Record<string, string>} asked */
async function picturesBox(run, asked) {
  if (exported) {
    return [element("p", { class: "soft" }, "They are not in this file: the live page, by `petridish explore`, shows what was kept.")];
  }
  if (!run.arrays.length) {
    return [element("p", { class: "soft" }, "None were kept. Evaluation(weights=True) keeps the last weights; instruments such as AttentionMap keep arrays.")];
  }
  const chosen = run.arrays.find((/** @type {any} */ each) => each.what === state.what) || run.arrays[0];
  const picture = await ask("picture", { ...asked, what: chosen.what, at: state.at });
  const rows = picture.rows, canvas = element("canvas", { class: "picture", width: rows[0].length, height: rows.length, role: "img",
    "aria-label": `${chosen.title || chosen.what}, ${chosen.shape.join(" × ")}` });
  const pen = canvas.getContext("2d"), size = num(picture.largest) || 1;
  rows.forEach((/** @type {any[]} */ row, /** @type {number} */ y) => row.forEach((value, x) => {
    pen.fillStyle = value === null ? "#888" : picture.signed ? signedColour(value / size) : shade(value / size);
    pen.fillRect(x, y, 1, 1);
  }));
  return [
    element("div", { class: "controls" },
      choice("Array", run.arrays.map((/** @type {any} */ each) => [each.what, `${each.title || each.what} (${each.shape.join(" × ")})`]),
        chosen.what, (what) => go({ what, at: "" }, "replace")),
      picture.slices > 1 ? element("label", {}, `Slice ${picture.at + 1} of ${picture.slices}`,
        element("input", { type: "range", min: 0, max: picture.slices - 1, value: picture.at, "data-key": "slice",
          onchange: (/** @type {any} */ event) => go({ at: event.target.value }, "replace") })) : null),
    canvas,
    picture.folded ? element("p", { class: "soft" }, `A line of numbers, read row by row: ${picture.folded} in each row.`) : null,
    element("p", { class: "soft" }, picture.signed ? `Blue: positive, orange: negative, up to ${written(size)}.` : `Dark: 0, light: ${written(size)}.`)];
}

/** Return blue for positive and orange for negative numbers, white for 0. @param {number} value */
function signedColour(value) {
  const far = Math.min(Math.abs(value), 1), to = value >= 0 ? [0, 114, 178] : [213, 94, 0];
  return `rgb(${to.map((part) => Math.round(255 + (part - 255) * far)).join(",")})`;
}
