"use strict";
// Which view is shown, and what happens when the runs change.

const EVERY = 1000; // milliseconds between two questions whether there are new runs
/** @type {Record<string, string>} */
const VIEWS = { map: "Map", claims: "Claims", calculator: "Calculator" };
/** @type {(() => any)[]} */
let afterwards = []; // what is drawn once its place is on the page
let rendering = 0;
let waiting = false; // for a slider to be left
/** @type {Record<string, number>} */
let versions = {};

/** Do something once the view is on the page. @param {() => any} work */
function later(work) {
  afterwards.push(work);
}

/** Return the head of every view of a set. @param {any} set */
function setHead(set) {
  const part = set.of && set.runs < set.of ? ` of ${set.of.toLocaleString("en")}` : "";
  return element("div", {},
    element("h1", { class: "of" }, set.id ? `${set.id} ${set.scale}: ${set.title}` : set.title),
    element("p", { class: "soft" }, [set.source, `${counted(set.runs, "run")}${part}${part && set.running ? ", running now" : ""}`,
      ...set.settings, set.place].filter(Boolean).join(" · ")));
}

/** Show what the address asks for. */
async function render() {
  const turn = ++rendering;
  const view = /** @type {HTMLElement} */ (document.getElementById("view"));
  const focused = document.activeElement?.getAttribute("data-key");
  afterwards = [];
  /** @type {any[]} */
  let parts;
  let set = null;
  try {
    if (state.v === "home" || !state.of) parts = await showHome();
    else {
      set = await ask("set", { of: state.of });
      const shows = { map: showMap, setting: showSetting, compare: showComparison, run: showRun, calculator: showCalculator, claims: showClaims };
      const show = /** @type {any} */ (shows)[state.v] || showMap;
      parts = await show(set);
    }
  } catch (error) {
    parts = [set ? setHead(set) : null, warning(error), element("p", {}, element("a", { href: set ? link({ v: "map", id: "", run: "", value: "" }) : "#" }, set ? "← map" : "← home"))];
  }
  if (turn !== rendering) return;
  const work = afterwards;
  view.replaceChildren(...parts.flat(3).filter((part) => part));
  view.dataset.view = state.of ? state.v : "home";
  showPlaces(set);
  document.title = set ? `${set.id || set.title} ${set.scale} – petridish` : "petridish explorer";
  if (focused) {
    const again = view.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (again instanceof HTMLElement) again.focus();
  }
  for (const each of work) Promise.resolve().then(each).catch((error) => view.append(warning(error)));
}

/** @param {any} set */
function showPlaces(set) {
  const places = /** @type {HTMLElement} */ (document.getElementById("places"));
  const of = (/** @type {string} */ view) => view === state.v || (view === "map" && ["setting", "run", "compare"].includes(state.v));
  places.replaceChildren(...(set ? Object.entries(VIEWS) : []).filter(([view]) => view !== "calculator" || !exported)
    .map(([view, title]) => element("a", { href: link({ v: view, id: "", run: "" }), "aria-current": of(view) ? "page" : null }, title)));
}

/** @param {string[]} problems */
function showProblems(problems) {
  const place = /** @type {HTMLElement} */ (document.getElementById("problems"));
  const shown = [...place.children].map((child) => child.textContent).join("\n");
  if (shown !== problems.join("\n")) {
    place.replaceChildren(...problems.map((text) => element("p", { class: "warning" }, text)));
  }
}

/** Ask whether there are new runs, and show them. */
async function follow() {
  if (!document.hidden) {
    try {
      const now = await fetchAnswer("state");
      showProblems(now.problems);
      const of = (/** @type {Record<string, number>} */ all) => JSON.stringify([all, now.running]);
      const changed = document.body.dataset.versions !== undefined && document.body.dataset.versions !== of(now.versions);
      versions = now.versions;
      document.body.dataset.versions = of(now.versions);
      if (changed) {
        forgetAnswers();
        // A slider that is being moved stays where it is; the page is drawn anew when it is left.
        if (document.activeElement instanceof HTMLInputElement) waiting = true;
        else await render();
      }
    } catch (error) {
      showProblems([/** @type {any} */ (error).message]);
    }
  }
  setTimeout(follow, EVERY);
}

/** Turn light to dark and back; the choice is kept in this browser. */
function turnTheme() {
  const root = document.documentElement;
  root.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("petridish-theme", root.dataset.theme);
  } catch { /* a file may keep nothing */ }
  render();
}

/** Begin. */
async function begin() {
  try {
    const kept = localStorage.getItem("petridish-theme");
    if (kept) document.documentElement.dataset.theme = kept;
  } catch { /* a file may keep nothing */ }
  document.getElementById("theme")?.addEventListener("click", turnTheme);
  addEventListener("hashchange", () => {
    state = readState(location.hash);
    render();
    scrollTo(0, 0);
  });
  addEventListener("focusout", () => {
    if (waiting) render();
    waiting = false;
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width && state.v === "map") render();
    width = innerWidth;
  });
  await readExported();
  await render();
  if (!exported) follow();
}

begin().catch((error) => document.getElementById("view")?.replaceChildren(warning(error)));
