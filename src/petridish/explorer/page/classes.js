"use strict";
// What became of the runs by two thresholds, from their curves: computed here, as a slider moves.

const CLASS_COLOURS = ["#0072B2", "#56B4E9", "#E69F00", "#BBBBBB", "#882255", "#FFFFFF"];
const DIVERGED = 4, UNKNOWN = 5; // classes, after those that thresholds alone tell apart
const LATER = 2; // a run groks if it is solved this many times later than it has fitted

/**
 * Return the first step at which a curve is at most a threshold; -1 if it never is.
 * @param {{starts: number[], steps: number[], values: number[]}} stairs @param {number} run
 * @param {number} threshold
 */
function firstBelow(stairs, run, threshold) {
  for (let at = stairs.starts[run]; at < stairs.starts[run + 1]; at++) {
    if (stairs.values[at] <= threshold) return stairs.steps[at];
  }
  return -1;
}

/**
 * Count the classes of every setting: solved at once, grokked, memorised only, never fitted, diverged;
 * unknown where a run was stopped as solved before it could reach a lower error.
 * @param {any} stairs @param {number} settings @param {number} fitted @param {number} solved
 * @returns {number[][]}
 */
function classify(stairs, settings, fitted, solved) {
  const counts = CLASS_COLOURS.map(() => new Array(settings).fill(0));
  for (let run = 0; run < stairs.runs; run++) {
    const fittedAt = firstBelow(stairs.train, run, fitted);
    const solvedAt = firstBelow(stairs.test, run, solved);
    let kind = fittedAt >= 0 ? 2 : 3;
    if (solvedAt >= 0) {
      const unsolvedUntil = solvedAt - stairs.every[run];
      kind = fittedAt >= 0 && unsolvedUntil >= LATER * Math.max(fittedAt, 1) ? 1 : 0;
    } else if (stairs.diverged[run]) kind = DIVERGED;
    else if (stairs.stopped[run]) kind = UNKNOWN;
    counts[kind][stairs.setting[run]]++;
  }
  return counts;
}

/** Return a slider of a threshold, on a logarithmic scale. @param {string} label @param {number} value @param {(value: number) => void} moved */
function thresholdSlider(label, value, moved) {
  const said = element("output", {}, written(value));
  const slider = element("input", {
    type: "range", min: -4, max: -0.25, step: 0.01, value: Math.log10(Math.max(value, 1e-4)),
    "aria-label": label, "data-key": label,
    oninput: (/** @type {any} */ event) => {
      const chosen = Number((10 ** Number(event.target.value)).toPrecision(3));
      said.textContent = written(chosen);
      moved(chosen);
    },
  });
  return element("label", { class: "line" }, label, slider, said);
}

/** Return the thresholds by which runs are classified: those moved to, or those of the runs; NaN where they differ. @param {any} set */
function thresholdsIn(set) {
  const usual = { fitted: num(set.thresholds.fitted), solved: num(set.thresholds.solved) };
  if (!set.curves) return usual;
  return { fitted: Number(state.fitted) || usual.fitted || 0.01, solved: Number(state.solved) || usual.solved || 0.1 };
}

let slidTo = 0; // frames asked for by sliders

/** Return the sliders that classify the runs anew. @param {any} set @param {any} value @param {{value: any}} now @param {() => void} draw */
async function thresholds(set, value, now, draw) {
  if (!set.curves) {
    return element("p", { class: "soft" },
      "These runs kept no curves, so that their classes are those of the thresholds they were run with. ",
      curvesWanted(set, "there are sliders here"));
  }
  const stairs = await ask("stairs", { of: set.name });
  const usual = num(set.thresholds.solved);
  const chosen = thresholdsIn(set);
  const again = () => {
    const counts = classify(stairs, set.counts.id.length, chosen.fitted, chosen.solved);
    now.value = { ...value, counts };
  };
  const moved = (/** @type {"fitted" | "solved"} */ which) => (/** @type {number} */ to) => {
    chosen[which] = to;
    cancelAnimationFrame(slidTo);
    slidTo = requestAnimationFrame(() => {
      const began = performance.now();
      again();
      document.body.dataset.classified = String(performance.now() - began);
      draw();
      history.replaceState(null, "", link({ fitted: String(chosen.fitted), solved: String(chosen.solved) }));
      state = readState(location.hash);
    });
  };
  again();
  const part = stairs.runs < stairs.of
    ? ` From the curves of ${stairs.runs.toLocaleString("en")} of ${stairs.of.toLocaleString("en")} runs.` : "";
  const lowest = Number.isFinite(usual)
    ? ` Runs stopped at a test error of ${written(usual)}: what they would have become by a lower one is unknown.` : "";
  return element("div", {},
    element("div", { class: "controls" },
      thresholdSlider("Fitted: training error ≤", chosen.fitted, moved("fitted")),
      thresholdSlider("Solved: test error ≤", chosen.solved, moved("solved"))),
    element("p", { class: "soft" },
      `Grokked: solved at least ${LATER} times later than fitted.${part}${lowest}`));
}
