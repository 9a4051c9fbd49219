"use strict";
// The calculator: what reaches a success probability within limits, and the front of all that does.

const RESOURCES = [["m", "sample size m"], ["r", "width r"], ["steps", "steps"], ["restarts", "restarts"],
  ["compute", "budget (width × steps × restarts)"]];
let askedAgain = 0;
let answers = 0;
/** @type {Partial<State>} */
let moved = {};

/** Show the calculator. @param {any} set */
async function showCalculator(set) {
  const target = state.target || "0.9";
  const results = element("div", { class: "results" });
  const first = await ask("calculator", calculatorQuestion(set));
  later(() => showResults(results, set, first));
  const said = element("output", {}, target);
  // The sliders stay as they are while one of them is moved: only what stands below is new.
  const soon = (/** @type {Partial<State>} */ changes) => {
    moved = { ...moved, ...changes };
    clearTimeout(askedAgain);
    askedAgain = window.setTimeout(async () => {
      history.replaceState(null, "", link(moved));
      state = readState(location.hash);
      moved = {};
      const turn = ++answers;
      try {
        const found = await ask("calculator", calculatorQuestion(set));
        if (turn === answers) await showResults(results, set, found);
      } catch (error) {
        results.replaceChildren(warning(error));
      }
    }, 120);
  };
  return [
    setHead(set),
    element("h1", {}, "What does success cost?"),
    element("p", { class: "soft" }, "Ways to reach a success probability that no other one beats in data, width, steps and restarts, as `petridish frontier` finds them."),
    element("div", { class: "controls" },
      element("label", { class: "line" }, "Success", element("input", { type: "range", min: 0.05, max: 0.99, step: 0.01, value: target,
        "data-key": "target", "aria-label": "target success probability", oninput: (/** @type {any} */ event) => {
          said.textContent = event.target.value;
          soon({ target: event.target.value });
        } }), said),
      RESOURCES.map(([name, title]) => limitSlider(name, title, first.ranges[name], soon)),
      first.held.map(heldChoice)),
    results,
  ];
}

/** Return what the sliders ask. @param {any} set */
function calculatorQuestion(set) {
  const held = Object.fromEntries(Object.entries(state.where).map(([name, text]) => [FILTER + name, text]));
  return { of: set.name, target: state.target || "0.9", m: state.m, r: state.r, steps: state.steps, restarts: state.restarts, compute: state.compute, ...held };
}

/** Return the choice of the value at which a field is held: one, where the ways cannot tell its values apart. @param {any} field */
function heldChoice(field) {
  /** @type {[string, string][]} */
  const levels = field.levels.map((/** @type {string} */ text) => [text, text]);
  return choice(field.label, field.must ? levels : [["", "all"], ...levels], field.chosen, (text) => {
    const where = { ...state.where };
    if (text) where[field.name] = text; else delete where[field.name];
    go({ where, m: "", r: "", steps: "", restarts: "", compute: "" }, "replace");
  });
}

/** Show an answer below the sliders. @param {HTMLElement} place @param {any} set @param {any} found */
async function showResults(place, set, found) {
  const front = element("div", { class: "chart", role: "img", "aria-label": "compute against sample size" });
  const best = found.mixtures.filter((/** @type {any} */ o) => o.best);
  const several = new Set(best.map((/** @type {any} */ o) => o.task)).size > 1;
  const parts = [
    found.held.length ? element("p", { class: "soft" }, `Of the runs with ${found.held.map((/** @type {any} */ field) => `${field.label} ${field.chosen}`).join(", ")}.`) : null,
    found.why ? element("p", {}, found.why) : null,
    ...found.cheapest.map(answerBox),
    best.length && !found.cheapest.length ? element("p", { class: "answer" },
      "Nothing that was measured reaches this within these limits. Move one of them up.") : null,
    best.length ? front : null,
    best.length ? table([...(several ? ["task"] : []), "m", "width r", "start", "steps", "restarts", "success of one run", "n", "compute"],
      best.map((/** @type {any} */ o) => [...(several ? [o.task] : []), ...mixtureRow(o)]), (row) => (best[row].within ? {} : { class: "out" })) : null,
    best.length ? element("div", { class: "buttons" }, element("button", { type: "button",
      onclick: () => saveMixtures(set, found) }, "CSV")) : null,
    commandBox(calculatorCommands(set, state.target || "0.9", found.held)),
  ];
  place.replaceChildren(...parts.filter((part) => part !== null));
  if (best.length) await drawFront(front, set, found);
}

/** Save all ways that were found as CSV. @param {any} set @param {any} found */
function saveMixtures(set, found) {
  const names = ["task", "init", "m", "width", "steps", "restarts", "restarts_low", "restarts_high", "success", "low",
    "high", "runs", "compute", "compute_low", "compute_high", "best", "within"];
  download(`${set.name}-mixtures.csv`, csv([names, ...found.mixtures.map((/** @type {any} */ o) => names.map((name) => o[name]))]));
}

/** Return a slider over the values that occur; its right end is no limit. @param {string} name @param {string} title @param {any[]} values @param {(changes: Partial<State>) => void} soon */
function limitSlider(name, title, values, soon) {
  const levels = (values || []).map(num).filter(Number.isFinite);
  const now = num(/** @type {any} */ (state)[name] || null);
  const at = Number.isNaN(now) ? levels.length : levels.findIndex((level) => level >= now);
  const most = (/** @type {number} */ level) => `≤ ${level >= 1e6 ? level.toExponential(1) : level.toLocaleString("en")}`;
  const said = element("output", {}, Number.isNaN(now) ? "no limit" : most(now));
  return element("label", { class: "line" }, title, element("input", {
    type: "range", min: 0, max: levels.length, step: 1, value: at < 0 ? levels.length : at,
    "data-key": `limit ${name}`, "aria-label": `limit on ${title}`,
    oninput: (/** @type {any} */ event) => {
      const level = levels[Number(event.target.value)];
      said.textContent = level === undefined ? "no limit" : most(level);
      soon({ [name]: level === undefined ? "" : String(level) });
    } }), said);
}

/** Write a whole number; null is infinite. @param {any} value */
function whole(value) {
  return value === null || value === "inf" ? "∞" : Number(value).toLocaleString("en");
}

/** @param {any} best */
function answerBox(best) {
  const runs = best.restarts > 1 ? `${whole(best.restarts)} restarts` : "1 run";
  return element("div", { class: "answer" },
    element("p", {}, `m = ${whole(best.m)}, width ${whole(best.width)}, ${best.init}, ${whole(best.steps)} steps, ${runs} [${whole(best.restarts_low)} to ${whole(best.restarts_high)}]`),
    element("p", {}, `${best.task}. One run succeeds with probability ${written(best.success)} [${written(best.low)}, ${written(best.high)}], n = ${best.runs}. ` +
      `Compute width × steps × restarts = ${best.compute.toExponential(1)} [${exponential(best.compute_low)}, ${exponential(best.compute_high)}].`));
}

/** @param {any} value */
function exponential(value) {
  return value === null ? "∞" : Number(value).toExponential(1);
}

/** @param {any} o */
function mixtureRow(o) {
  return [whole(o.m), whole(o.width), o.init, whole(o.steps), `${whole(o.restarts)} [${whole(o.restarts_low)}, ${whole(o.restarts_high)}]`,
    `${written(o.success)} [${written(o.low)}, ${written(o.high)}]`, o.runs, `${o.compute.toExponential(1)}`];
}

/** @param {HTMLElement} place @param {any} set @param {any} found */
function drawFront(place, set, found) {
  const finite = found.mixtures.filter((/** @type {any} */ o) => o.m !== "inf");
  const inits = [...new Set(finite.map((/** @type {any} */ o) => o.init))];
  const hues = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const traces = inits.flatMap((init, at) => [true, false].map((within) => {
    const of = finite.filter((/** @type {any} */ o) => o.init === init && o.within === within);
    return { x: of.map((/** @type {any} */ o) => o.m), y: of.map((/** @type {any} */ o) => o.compute), mode: "markers", type: "scatter",
      name: plain(`${init}${within ? "" : ", beyond the limits"}`),
      marker: { color: hues[at % hues.length], size: of.map((/** @type {any} */ o) => o.best ? 11 : 7), symbol: within ? "circle" : "circle-open", opacity: within ? 0.9 : 0.4 },
      error_y: { type: "data", symmetric: false, thickness: 0.8, width: 0,
        array: of.map((/** @type {any} */ o) => o.compute_high === null ? 0 : o.compute_high - o.compute),
        arrayminus: of.map((/** @type {any} */ o) => o.compute_low === null ? 0 : o.compute - o.compute_low) },
      text: of.map((/** @type {any} */ o) => plain(`width ${o.width}, ${o.steps} steps, ${o.restarts} restarts`)),
      hovertemplate: "m = %{x}, compute %{y:.2e}<br>%{text}<extra></extra>" };
  })).filter((trace) => trace.x.length);
  return chart(place, traces, { x: "sample size m", y: "width × steps × restarts", logX: true, logY: true, title: `${set.name}-front` });
}
