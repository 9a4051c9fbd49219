"use strict";
// Answers about the runs: from the server, or from the file itself.

/** @type {Record<string, any> | null} */
let exported = null; // the answers in an exported file
/** @type {Map<string, Promise<any>>} */
const answered = new Map(); // by question; of one version of the runs
const MOST_ANSWERS = 200;

/** Read what an exported file holds; live there is nothing. */
async function readExported() {
  const held = document.getElementById("data");
  if (held) exported = JSON.parse(await unpacked(held.textContent || ""));
}

/** Return the text of what was gzipped and written in base 64. @param {string} packed */
async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** Return the name under which an answer is kept. @param {string} what @param {Record<string, string>} asked */
function question(what, asked) {
  const given = Object.entries(asked).filter(([, text]) => text !== "").sort();
  return what + (given.length ? "?" + new URLSearchParams(given).toString() : "");
}

/**
 * Return an answer; an error has one clear sentence.
 * @param {string} what @param {Record<string, string>} [asked] @returns {Promise<any>}
 */
function ask(what, asked = {}) {
  const name = question(what, asked);
  if (exported) {
    if (name in exported) return Promise.resolve(exported[name]);
    return Promise.reject(new Error("This file does not hold that: " +
      "open the live page by `petridish explore`."));
  }
  const known = answered.get(name);
  if (known) return known;
  const found = fetchAnswer(name);
  answered.set(name, found);
  found.catch(() => answered.delete(name));
  if (answered.size > MOST_ANSWERS) answered.delete([...answered.keys()][0]);
  return found;
}

/** @param {string} name @returns {Promise<any>} */
async function fetchAnswer(name) {
  let reply;
  try {
    reply = await fetch("api/" + name, { credentials: "same-origin" });
  } catch {
    throw new Error("The server does not answer. Is `petridish explore` still running?");
  }
  const type = reply.headers.get("content-type") || "";
  const body = type.includes("json") ? await reply.json() : { error: (await reply.text()).trim() };
  if (!reply.ok) throw new Error(body.error || `The server answered ${reply.status}.`);
  return body;
}

/** Return a number of an answer: null is none, "inf" is infinite. @param {any} value */
function num(value) {
  if (value === null || value === undefined) return NaN;
  return value === "inf" ? Infinity : value === "-inf" ? -Infinity : Number(value);
}

/** Forget what is known of the runs: there are others. */
function forgetAnswers() {
  answered.clear();
}
