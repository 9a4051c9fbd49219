"use strict";
// The home: what there is to look at, and the scoreboard of all claims.

/** Show the home. */
async function showHome() {
  const home = await ask("home");
  const of = (/** @type {string} */ kind) => home.sets.filter((/** @type {any} */ set) => set.kind === kind);
  const stores = home.stores.map((/** @type {any} */ store) => `${store.folder}: ${counted(store.runs, "run")}`).join("; ");
  const board = element("div", {});
  later(async () => {
    try {
      board.replaceChildren(...scoreboardParts(await ask("scoreboard")));
    } catch (error) {
      board.replaceChildren(warning(error));
    }
  });
  return [
    element("h1", {}, "Runs"),
    element("p", { class: "soft" }, stores),
    element("div", { class: "cards" }, [...of("sweep"), ...of("store")].map((/** @type {any} */ set) =>
      card(set, home.stores.length > 1 && set.kind === "sweep" ? set.place : ""))),
    of("record").length ? element("h2", {}, "Records") : null,
    element("div", { class: "cards" }, of("record").map((/** @type {any} */ set) => card(set))),
    board,
  ];
}

/** @param {any} set @param {string} [place] its store, where there are several */
function card(set, place = "") {
  const verdicts = element("p", { class: "verdicts" });
  const show = (/** @type {string[]} */ words) => verdicts.replaceChildren(...wordBadges(words));
  if (set.verdicts) show(set.verdicts);
  else if (set.part) verdicts.replaceChildren(element("span", { class: "soft" }, "some settings of the experiment: claims are not judged on a part"));
  else if (set.claims && set.runs) {
    later(() => ask("claims", { of: set.name }).then((found) => show(found.claims.map((/** @type {any} */ c) => c.word)), () => {}));
  }
  const part = set.of && set.runs < set.of;
  return element("a", { class: "card", href: writeState({ ...NOTHING, v: "map", of: set.name }), "data-set": set.name },
    element("b", {}, set.id ? `${set.id} ${set.scale}` : set.title),
    set.settings.length ? element("span", { class: "soft" }, set.settings.join(" ")) : null,
    set.id ? element("p", {}, set.title) : null,
    element("p", { class: "soft" }, `${counted(set.runs, "run")}${part ? ` of ${set.of.toLocaleString("en")}` : ""}${part && set.running ? ", running now" : ""}${place ? ` · ${place}` : ""}`),
    part ? element("progress", { max: set.of, value: set.runs, "aria-label": "runs made" }) : null,
    verdicts);
}

/** Return a badge for each word with its number. @param {string[]} words */
function wordBadges(words) {
  const order = ["supported", "contradicted", "undecided"];
  return [...new Set(words)].sort((a, b) => order.indexOf(a) - order.indexOf(b))
    .flatMap((word) => [badge(word, `${words.filter((each) => each === word).length} `), " "]);
}

/** @param {any} board */
function scoreboardParts(board) {
  if (!board.claims.length) {
    return [element("h2", {}, "Scoreboard"), element("p", { class: "soft" },
      "Nothing counts yet: there is no folder of records here, and no store has runs of an experiment above smoke scale.")];
  }
  return [
    element("h2", {}, "Scoreboard"),
    element("p", { class: "soft" }, "Every claim by the record with most runs, or, without a record, by what the stores hold. `petridish scoreboard` prints the same."),
    ...board.counts.map((/** @type {any} */ counts) => table(counts.head, counts.rows)),
    ...board.chapters.map((/** @type {string} */ chapter) => element("details", {},
      element("summary", {}, chapter),
      table(["claim", "kind", "verdict", "estimate", "n", "the paper", "from"], board.claims
        .filter((/** @type {any} */ claim) => claim.chapter === chapter)
        .map((/** @type {any} */ claim) => [`${claim.id} (${claim.claim}) ${claim.text}${claim.largest ? "" : " (judged further)"}`, claim.kind, badge(claim.verdict), claim.numbers,
          claim.n || "", claim.largest ? claim.paper : "", element("span", { class: "place" }, claim.record)]), () => ({}), true))),
  ];
}
