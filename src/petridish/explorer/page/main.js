"use strict";
// Which view is shown, and what happens when the runs change.

const PATIENCE = 200; // milliseconds before what is shown is said to be old
const MOST_LINES = 2; // of problems, before they are folded
const EVERY = 1000; // milliseconds between two questions whether there are new runs
/** @type {Record<string, string>} */
const VIEWS = { map: "Map", claims: "Claims", calculator: "Calculator" };
/** @type {{work: () => any, place: Element | null}[]} */
let afterwards = []; // what is drawn once its place is on the page
let rendering = 0;
let shown = state; // what the page shows, while it reads what is asked for
let waiting = false; // for a slider to be left
/** @type {Record<string, number>} */
let versions = {};

/** Do something once the view is on the page; what goes wrong is said in its place. @param {() => any} work @param {Element | null} [place] */
function later(work, place = null) {
  afterwards.push({ work, place });
}

/** Say that something else is being read: in the place of another view, or by paling what stands there. @param {HTMLElement} view @param {State} from */
function sayReading(view, from) {
  if (writeState(from) === writeState(state)) return; // new runs alone: what stands there is shown on
  view.setAttribute("aria-busy", "true");
  const same = /** @type {("v" | "of" | "id" | "run")[]} */ (["v", "of", "id", "run"]).every((name) => from[name] === state[name]);
  if (!same) view.replaceChildren(element("p", { class: "soft", role: "status" }, "Reading …"));
}

/** Put the focus back to where it was before the page was drawn anew; on a map, to the setting that was left. @param {HTMLElement} view @param {string | null | undefined} key @param {string | null | undefined} id @param {State} from */
function focusAgain(view, key, id, from) {
  const again = key && view.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (again instanceof HTMLElement) again.focus();
  if (state.v !== "map") {
    pointedAt = "";
    return;
  }
  const left = from.v === "setting" && from.of === state.of ? from.id : "";
  const cell = cellOf(view, id || left);
  if (cell && !again) focusCell(cell);
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
  const [key, id] = ["data-key", "data-id"].map((name) => document.activeElement?.getAttribute(name));
  const from = shown;
  const reading = setTimeout(() => { if (turn === rendering) sayReading(view, from); }, PATIENCE);
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
  clearTimeout(reading);
  if (turn !== rendering) return;
  const work = afterwards;
  shown = state;
  view.removeAttribute("aria-busy");
  view.replaceChildren(...parts.flat(3).filter((part) => part));
  view.dataset.view = state.of ? state.v : "home";
  showPlaces(set);
  document.title = set ? `${set.id || set.title} ${set.scale} – petridish` : "petridish explorer";
  focusAgain(view, key, id, from);
  for (const each of work) {
    Promise.resolve().then(each.work).catch((error) => each.place ? each.place.replaceChildren(warning(error)) : view.append(warning(error)));
  }
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
  const told = [...place.querySelectorAll("p")].map((line) => line.textContent).join("\n");
  if (told === problems.join("\n")) return;
  const lines = problems.map((text) => element("p", { class: "warning" }, text));
  place.replaceChildren(...(lines.length <= MOST_LINES ? lines : [lines[0],
    element("details", {}, element("summary", {}, `${lines.length - 1} more of this kind`), lines.slice(1))]));
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
  addEventListener("keydown", pinByKey);
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
