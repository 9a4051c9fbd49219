"use strict";
// Curves and distributions, drawn by plotly, whose script is read when the first is asked for.

/** @type {Promise<any> | null} */
let plotly = null;
const OUTCOMES = { SOLVED: [0, "solved"], OUT_OF_STEPS: [2, "not solved"], DIVERGED: [1, "diverged"] };
const LINES = [["#0072B2", "#D55E00", "#999999"], ["#56B4E9", "#FF9147", "#8A8A93"]]; // on light, on dark

/** Return whether the page is dark. */
function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Return a colour of lines that is seen on the page's ground. @param {number} which */
function lineColour(which) {
  return LINES[isDark() ? 1 : 0][which];
}

/** Read plotly's script once. */
function loadPlotly() {
  plotly ||= new Promise((ready, fail) => {
    const held = document.getElementById("plotly");
    const script = document.createElement("script");
    const done = () => /** @type {any} */ (window).Plotly
      ? ready(/** @type {any} */ (window).Plotly) : fail(new Error("The script for charts cannot be read."));
    if (held) {
      unpacked(held.textContent || "").then((text) => {
        script.textContent = text;
        document.head.append(script);
        done();
      }, fail);
    } else {
      script.onload = done;
      script.onerror = done;
      script.src = "page/plotly.min.js";
      document.head.append(script);
    }
  });
  return plotly;
}

/** Return text that plotly does not read as markup. @param {any} text */
function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * Draw a chart into a place on the page.
 * @param {HTMLElement} place @param {any[]} traces @param {{x: string, y: string, logX?: boolean,
 *   logY?: boolean, title: string, rangeY?: number[]}} how
 */
async function chart(place, traces, how) {
  const Plotly = await loadPlotly();
  if (!place.isConnected) return;
  const style = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const axis = (/** @type {string} */ title, /** @type {boolean | undefined} */ log) => ({
    title: { text: plain(title) }, type: log ? "log" : "linear", gridcolor: colour("--line"),
    zeroline: false, automargin: true, nticks: place.clientWidth < 500 ? 5 : 8,
  });
  await Plotly.react(place, traces, {
    xaxis: axis(how.x, how.logX),
    yaxis: { ...axis(how.y, how.logY), ...(how.rangeY ? { range: how.rangeY } : {}) },
    font: { family: "system-ui, sans-serif", size: 12, color: colour("--ink") },
    paper_bgcolor: colour("--page"), plot_bgcolor: colour("--page"),
    // The legend stands below, the buttons above: neither covers the other.
    margin: { l: 50, r: 10, t: 32, b: 40 }, legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0 },
    hovermode: "closest", showlegend: true,
  }, { displaylogo: false, responsive: true, showSendToCloud: false, plotlyServerURL: "", // nothing is uploaded
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: how.title },
    modeBarButtonsToAdd: [{ name: "Download plot as a PNG", icon: Plotly.Icons.disk,
      click: (/** @type {any} */ shown) => Plotly.downloadImage(shown, { format: "png", scale: 2, filename: how.title }) }] });
}

/** Return the traces of curves: those of one outcome are one line with gaps. @param {any} curves @param {number} [shown] @param {string} [dash] @param {string} [before] */
function curveTraces(curves, shown = 200, dash = "solid", before = "") {
  return Object.entries(OUTCOMES).map(([outcome, [which, name]]) => {
    const colour = lineColour(Number(which));
    const runs = curves.runs.slice(0, shown).filter((/** @type {any} */ run) => run.outcome === outcome);
    const x = [], y = [], text = [];
    for (const run of runs) {
      x.push(...run.step, null);
      y.push(...run.value, null);
      const said = `seed ${run.seed}${run.restart ? `, restart ${run.restart}` : ""}`;
      text.push(...run.step.map(() => said), "");
    }
    return { x, y, text, mode: "lines", type: "scatter", name: `${plain(before)}${name} (${runs.length})`,
      line: { color: colour, width: runs.length > 30 ? 0.8 : 1.4, dash }, opacity: runs.length > 30 ? 0.6 : 0.9,
      hovertemplate: "%{text}<br>step %{x}: %{y:.4g}<extra></extra>" };
  }).filter((trace) => trace.x.length);
}

/** Return the share of runs that were solved by each step, to the end of the longest. @param {any} setting @param {string} name @param {number} which */
function solvedBy(setting, name, which) {
  const times = setting.times.map(Number);
  const x = [0], y = [0];
  times.forEach((/** @type {number} */ time, /** @type {number} */ at) => {
    x.push(Math.max(time, 1));
    y.push((at + 1) / setting.n);
  });
  const steps = (setting.runs[setting.columns.indexOf("steps")] || []).map(Number);
  x.push(Math.max(1.05 * x[x.length - 1], ...steps));
  y.push(y[y.length - 1]);
  return { x, y, mode: "lines", type: "scatter", line: { shape: "hv", color: lineColour(which), width: 2 }, name: plain(name),
    hovertemplate: "%{y:.0%} solved by step %{x}<extra></extra>" };
}
