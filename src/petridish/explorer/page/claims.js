"use strict";
// The claims of an experiment, judged from the runs as they are.

/** Show the claims. @param {any} set */
async function showClaims(set) {
  const found = await ask("claims", { of: set.name });
  const so = found.complete || set.kind === "record" ? "" :
    `So far, from ${found.runs?.toLocaleString("en")}${found.of ? ` of ${found.of.toLocaleString("en")}` : ""} runs: a verdict that is watched while runs come in is reached too often, and counts when the sweep is complete.`;
  return [
    setHead(set),
    element("h1", {}, "Claims"),
    found.why ? element("p", {}, found.why) : null,
    so && found.claims.length ? element("p", { class: "soft" }, so) : null,
    found.claims.map((/** @type {any} */ claim) => claimBox(set, claim)),
    commandBox(claimCommands(set)),
  ];
}

/** @param {any} set @param {any} claim */
function claimBox(set, claim) {
  const marked = claim.marks.for.length + claim.marks.against.length;
  return element("div", { class: "claim" },
    element("h3", {}, `(${claim.claim}) ${claim.text}`),
    element("div", { class: "sides" },
      claim.paper ? element("div", { class: "paper" }, element("h4", {}, "The paper"), element("p", {}, claim.paper),
        element("p", { class: "soft" }, `${claim.source}; kind: ${claim.kind}`)) : null,
      element("div", claim.paper ? {} : { class: "alone" }, element("h4", {}, "Here"),
        element("p", {}, badge(claim.word), " ", element("span", { class: "estimate number" }, claim.numbers)),
        element("p", {}, `${claim.quantity}; n = ${claim.n.toLocaleString("en")}, level ${written(claim.level)}`),
        claim.remark ? element("p", { class: "soft" }, claim.remark) : null,
        (claim.notes || []).map((/** @type {string} */ note) => element("p", { class: "soft" }, `→ ${note}`)),
        claim.strata.length ? element("details", {}, element("summary", {}, `${counted(claim.strata.length, "stratum").replace("stratums", "strata")}, each judged alone`),
          element("ul", {}, claim.strata.map((/** @type {string[]} */ [name, word]) => element("li", {}, `${name}: ${word}`)))) : null,
        element("p", {}, element("a", { href: link({ v: "map", claim: claim.claim, value: "", id: "" }) },
          marked ? "On the map: what speaks for it and against it" : "On the map: no stratum decides it alone")))));
}
