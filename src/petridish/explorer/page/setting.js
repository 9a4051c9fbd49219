"use strict";
// One setting: its runs, curves, times and spec; two pinned ones beside each other.

const MOST_LISTED = 100; // runs before «all» is asked for

/** Show a setting. @param {any} set */
async function showSetting(set) {
  const i = set.counts.id.indexOf(state.id);
  if (i < 0) throw new Error("This setting is not among the runs any more. Choose one on the map.");
  const [setting, solved] = await Promise.all([ask("setting", { of: set.name, id: state.id }), ask("value", { of: set.name, value: "solved" })]);
  const times = element("div", { class: "chart", role: "img", "aria-label": "share of runs solved by each step" });
  if (setting.times.length) {
    later(() => chart(times, [solvedBy(setting, `n = ${setting.n}`, 0)],
      { x: "step", y: "share solved", logX: true, title: `${set.name}-times`, rangeY: [-0.02, 1.02] }), times);
  }
  return [
    setHead(set),
    element("h1", {}, settingTitle(set, i)),
    element("p", { class: "headline" }, cellText(set, i, solved)),
    element("p", { class: "soft" }, setting.text),
    element("div", { class: "buttons" },
      element("a", { href: link({ v: "map" }) }, "← map"),
      element("button", { type: "button", "aria-pressed": String(pinned().includes(state.id)), "data-key": "pin",
        onclick: () => togglePin(state.id) }, pinned().includes(state.id) ? "Pinned" : "Pin for a comparison")),
    pinsBox(set),
    element("div", { class: "columns" },
      element("section", {}, element("h2", {}, "Curves"), ...curvesBox(set, [setting])),
      element("section", {}, element("h2", {}, "Times"), setting.times.length ? times
        : element("p", { class: "soft" }, "No run of it was solved."))),
    element("h2", {}, counted(setting.n, "run")),
    runsTable(set, setting),
    element("div", { class: "columns" },
      element("section", {}, element("h2", {}, "Spec"),
        element("pre", { class: "spec", tabindex: 0 }, setting.spec)),
      element("section", {}, element("h2", {}, "To run it again"), commandBox(settingCommands(set, i)))),
  ];
}

/** Return the curves of some settings, with what chooses them. @param {any} set @param {any[]} settings */
function curvesBox(set, settings) {
  const names = settings[0].curves.filter((/** @type {string} */ name) => settings.every((each) => each.curves.includes(name)));
  if (!names.length) {
    return [element("p", { class: "soft" }, "These runs kept no curves. ", curvesWanted(set, "they have them"))];
  }
  const chosen = names.includes(state.curve) ? state.curve
    : names.includes("test_error") ? "test_error" : names[0];
  const axes = state.axes || "x";
  const place = element("div", { class: "chart", role: "img", "aria-label": `curves of ${chosen}` });
  const note = element("p", { class: "soft" });
  later(async () => {
    const found = await Promise.all(settings.map((each) => ask("curves", { of: set.name, id: each.id, curve: chosen })));
    const traces = found.flatMap((curves, at) => curveTraces(curves, 200, at ? "dot" : "solid", settings.length > 1 ? `${"AB"[at]}: ` : ""));
    if (!traces.length) {
      place.replaceChildren(element("p", { class: "soft" }, "No run of it has this curve."));
      return;
    }
    await chart(place, traces, { x: "step", y: chosen, logX: axes.includes("x"), logY: axes.includes("y"), title: `${set.name}-${chosen}` });
    note.textContent = found.map((curves) => [
      curves.runs.length < curves.of ? `${curves.runs.length} of ${curves.of} runs are drawn` : "",
      curves.thinned ? `curves are thinned to ${curves.thinned}` : ""].filter(Boolean).join("; ")).filter(Boolean).join(" · ");
    if (axes.includes("x")) note.append(" Step 0 is not on a logarithmic axis.");
  }, place);
  const turn = (/** @type {string} */ axis) => () =>
    go({ axes: (axes.includes(axis) ? axes.replace(axis, "") : axes + axis).replace("-", "") || "-" }, "replace");
  return [
    element("div", { class: "controls" },
      choice("Curve", names.map((/** @type {string} */ name) => [name, name]), chosen, (curve) => go({ curve }, "replace")),
      element("button", { type: "button", "data-key": "log x", "aria-pressed": String(axes.includes("x")), onclick: turn("x") }, "log steps"),
      element("button", { type: "button", "data-key": "log y", "aria-pressed": String(axes.includes("y")), onclick: turn("y") }, "log values"),
      element("button", { type: "button", onclick: () => saveCurves(set, settings, chosen) }, "CSV")),
    place, note];
}

/** @param {any} set @param {any[]} settings @param {string} name */
async function saveCurves(set, settings, name) {
  const rows = [["setting", "seed", "restart", "step", name]];
  for (const each of settings) {
    const curves = await ask("curves", { of: set.name, id: each.id, curve: name });
    for (const run of curves.runs) {
      run.step.forEach((/** @type {number} */ step, /** @type {number} */ at) =>
        rows.push([each.id, run.seed, run.restart, step, run.value[at]]));
    }
  }
  download(`${set.name}-${name}.csv`, csv(rows));
}

/** Return the table of a setting's runs. @param {any} set @param {any} setting */
function runsTable(set, setting) {
  const names = /** @type {string[]} */ (setting.columns);
  const [seeds, restarts] = ["seed", "restart"].map((name) => setting.runs[names.indexOf(name)]);
  const line = (/** @type {number} */ run) => names.map((name, column) => {
    const value = setting.runs[column][run];
    if (name === "seed") return element("a", { href: link({ v: "run", run: `${seeds[run]}.${restarts[run]}` }) }, String(value));
    if (name === "outcome") return OUTCOMES[/** @type {"SOLVED"} */ (value)][1];
    return value === null ? "–" : typeof value === "number" ? Number(value.toPrecision(5)) : value;
  });
  const all = seeds.map((/** @type {any} */ _, /** @type {number} */ run) => run);
  const box = element("div", {}, table(names, all.slice(0, MOST_LISTED).map(line)));
  const more = all.length > MOST_LISTED ? element("button", { type: "button", onclick: () => {
    box.replaceChildren(table(names, all.map(line)));
  } }, `Show all ${all.length}`) : null;
  const rows = () => all.map((/** @type {number} */ run) => setting.runs.map((/** @type {any[]} */ column) => column[run]));
  if (more) box.append(more);
  return element("div", {}, box, element("div", { class: "buttons" },
    element("button", { type: "button", onclick: () => download(`${fileName(`${set.name}-${settingTitle(set, set.counts.id.indexOf(setting.id))}`)}.csv`, csv([names, ...rows()])) }, "CSV"),
    setting.n > all.length ? element("span", { class: "soft" }, `The first ${all.length} of ${setting.n} runs.`) : null));
}

/** Return what is pinned, with a way to compare two. @param {any} set */
function pinsBox(set) {
  const pins = pinned().filter((id) => set.counts.id.includes(id));
  if (!pins.length) return element("div", { class: "no-pins" });
  return element("div", { class: "pins" },
    pins.map((id, at) => element("p", {}, element("b", {}, `${"AB"[at]} `),
      element("a", { href: link({ v: "setting", id, run: "" }) }, settingTitle(set, set.counts.id.indexOf(id))), " ",
      element("button", { type: "button", "aria-label": `let go of ${"AB"[at]}`, onclick: () => togglePin(id) }, "×"))),
    pins.length === 2 ? element("p", {}, element("a", { href: link({ v: "compare" }) }, "Compare A with B"))
      : element("p", { class: "soft" }, "Pin a second setting to compare the two."));
}

/** Show two pinned settings beside each other. @param {any} set */
async function showComparison(set) {
  const pins = pinned().filter((id) => set.counts.id.includes(id));
  if (pins.length < 2) return [setHead(set), element("p", {}, "Pin two settings on the map (key P) to compare them."), pinsBox(set)];
  const [solved, a, b] = await Promise.all([ask("value", { of: set.name, value: "solved" }), ...pins.map((id) => ask("setting", { of: set.name, id }))]);
  const names = [...new Set([...Object.keys(a.fields), ...Object.keys(b.fields)])];
  const differ = names.filter((name) => a.fields[name] !== b.fields[name]);
  const times = element("div", { class: "chart", role: "img", "aria-label": "share of runs solved by each step" });
  const anySolved = a.times.length + b.times.length > 0;
  if (anySolved) later(() => chart(times, [solvedBy(a, `A, n = ${a.n}`, 0), solvedBy(b, `B, n = ${b.n}`, 1)],
    { x: "step", y: "share solved", logX: true, title: `${set.name}-compared`, rangeY: [-0.02, 1.02] }), times);
  const title = (/** @type {string} */ id) => settingTitle(set, set.counts.id.indexOf(id));
  return [
    setHead(set), element("h1", {}, "A and B"),
    element("p", {}, element("b", {}, "A "), title(pins[0]), element("br"), element("b", {}, "B "), title(pins[1])),
    element("p", {}, element("a", { href: link({ v: "map" }) }, "← map")),
    element("h2", {}, `${counted(differ.length, "field")} that ${differ.length === 1 ? "differs" : "differ"}`),
    table(["field", "A", "B"], differ.map((name) => [name, a.fields[name] ?? "–", b.fields[name] ?? "–"]), () => ({ class: "differs" })),
    pins.map((id, at) => element("p", { class: "headline" }, element("b", {}, `${"AB"[at]} `), cellText(set, set.counts.id.indexOf(id), solved))),
    element("div", { class: "columns" },
      element("section", {}, element("h2", {}, "Curves: A solid, B dotted"), ...curvesBox(set, [a, b])),
      element("section", {}, element("h2", {}, "Times"), anySolved ? times
        : element("p", { class: "soft" }, "No run of either was solved."))),
    commandBox(comparisonCommands(set, pins.map((id) => set.counts.id.indexOf(id)))),
  ];
}
