// The explorer: which table, which snapshot, which view. The address keeps all of it.

import { Refusal, ask, enter, file, forget, tables } from "./ask.js";
import { byId, el, fill } from "./dom.js";
import { described, film } from "./film.js";
import { filter } from "./filter.js";
import { graph } from "./graph.js";
import { scale } from "./scale.js";
import { feed, health, side } from "./side.js";
import { strip } from "./strip.js";
import { visible } from "./words.js";

const VIEWS = [["film", "Film"], ["scale", "To scale"], ["changes", "Changes"], ["branches", "Branches"], ["health", "Health"]];
const KEYS = [["← →", "one snapshot back, or on"], ["Home End", "the first, the last"], ["space", "play, pause"],
  ["1 to 5", "a view"], ["/", "the filter"], ["r", "see what was committed since"], ["Esc", "close what is open"], ["?", "this list"]];
const STEP_MS = 1150;
const AHEAD = 3;

const state = { table: "", view: "film", at: "", by: "", where: "", branch: "", leaf: "", theme: "" };
let known = [];
let told = null;
let line = [];
let index = 0;
let timer = null;
let drawing = null;
let pruned = null;
let turn = 0;

const stage = byId("stage");
const below = strip({ go: (at, how) => { pause(); go(at, how); }, play: toggle });
const box = filter({ fixed: Boolean(file), apply: (where) => { state.where = where; keep(); applyFilter(); } });
const beside = side({ zoom: (leaf) => { state.leaf = leaf; choose("scale"); } });

// --- the address ------------------------------------------------------------------------------

function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(state)) state[name] = given.get(name) ?? "";
  state.view = VIEWS.some(([name]) => name === state.view) ? state.view : "film";
}

function keep() {
  const pairs = Object.entries(state).filter(([name, value]) => value && !(name === "view" && value === "film"));
  history.replaceState(null, "", `#${new URLSearchParams(pairs)}`);
}

// --- the top ----------------------------------------------------------------------------------

function drawTop() {
  const chosen = el("select", { "aria-label": "Table", disabled: Boolean(file), onchange: () => {
    Object.assign(state, { table: chosen.value, at: "", by: "", where: "", branch: "", leaf: "" });
    keep();
    start();
  } }, known.map((each) => el("option", { value: each.table, selected: each.table === state.table }, each.table)));
  const refs = (told?.refs ?? []).filter((each) => each.type === "branch");
  const branch = refs.length > 1 && !file ? el("select", { "aria-label": "Branch", onchange: () => {
    Object.assign(state, { branch: branch.value, at: "", leaf: "" });
    keep();
    start();
  } }, refs.map((each) => el("option", { value: each.name, selected: each.name === told.at }, each.name))) : null;
  fill(byId("top"),
    el("h1", {}, el("span", { class: "logo", "aria-hidden": "true" }), "icetree"), chosen, branch,
    el("nav", { "aria-label": "Views" }, VIEWS.map(([name, title], at) =>
      el("button", { class: "tab", "aria-current": name === state.view ? "page" : null, title: `key ${at + 1}`, onclick: () => choose(name) }, title))),
    el("span", { class: "about" }, about()),
    el("button", { class: "quiet icon", "aria-label": "Light or dark", title: "Light or dark", onclick: flip }, "◐"),
    el("button", { class: "quiet icon", "aria-label": "Keys", title: "Keys (?)", onclick: help }, "?"));
}

function about() {
  if (!told) return "";
  const parts = [`v${told.format_version}`];
  if (told.partition_by.length) parts.push(`by ${told.partition_by.join(", ")}`);
  return parts.join(" · ");
}

function flip() {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--is-dark").trim() === "1";
  state.theme = dark ? "light" : "dark";
  keep();
  document.documentElement.dataset.theme = state.theme;
}

function help() {
  beside.open("Keys", el("dl", { class: "facts" }, KEYS.flatMap(([key, does]) => [el("dt", {}, key), el("dd", {}, does)])));
}

// --- views ------------------------------------------------------------------------------------

function choose(view) {
  if (view !== "scale") state.leaf = "";
  state.view = view;
  keep();
  drawTop();
  drawing = null;
  render({ animate: false });
}

/** Go to a snapshot of the line, by its ordinal. */
function go(at, { animate = true } = {}) {
  if (!line.length) return;
  index = Math.max(0, Math.min(line.length - 1, at));
  state.at = line[index].snapshot_id === told.line.at(-1) ? "" : line[index].snapshot_id;
  state.leaf = "";
  keep();
  below.show(index);
  render({ animate });
  if (state.where) applyFilter({ quiet: true });
}

const here = () => line[index]?.snapshot_id ?? "";
const table = () => known.find((each) => each.table === state.table);

async function render(how = {}) {
  const mine = ++turn;
  const isMine = () => mine === turn;
  if (!line.length) {
    fill(stage, el("p", { class: "padded" }, "Nothing was ever committed to this table."));
    return;
  }
  try {
    if (state.view === "film") await renderFilm(how, isMine);
    else if (state.view === "scale") await renderScale(isMine);
    else {
      const part = el("div", {});
      if (state.view === "changes") await feed(part, table(), here());
      else if (state.view === "health") { waiting(); await health(part, table(), file ? "" : state.branch); }
      if (!isMine()) return;
      fill(stage, part);
      if (state.view === "branches") graph(part, told, here(), { go: goTo });
    }
  } catch (error) {
    if (isMine()) failed(error);
  }
  stage.dataset.shown = isMine() ? `${state.view} ${here()}` : stage.dataset.shown;
}

async function renderFilm(how, isMine) {
  const asked = (snapshot) => ask(table(), "film", { at: snapshot.snapshot_id, limit: "1" });
  if (!drawing) waiting();
  const [frame] = await asked(line[index]);
  if (!isMine()) return;
  if (!drawing) {
    const part = el("div", { class: "drawing" });
    fill(stage, el("div", { class: "head" }, legend(), el("p", { class: "did" })), part);
    drawing = film(part, { pick });
    how = { ...how, animate: false };
  }
  stage.querySelector(".did").replaceChildren(...frame.did.map((each) => el("span", {}, each)));
  drawing.show(frame, { ...how, pruned });
  byId("status").textContent = described(frame);
  // The next frames, so that a film does not stop for them.
  for (const next of line.slice(index + 1, index + 1 + AHEAD)) asked(next).catch(() => {});
}

async function renderScale(isMine) {
  const by = state.by || told.axis || "";
  const given = { at: here(), by, where: file ? (pruned ? state.where : "") : pruned ? state.where : "", leaf: state.leaf };
  const found = await ask(table(), "scale", given);
  if (!isMine()) return;
  const part = el("div", { class: "drawing" });
  const axis = el("select", { id: "by", onchange: () => { state.by = axis.value; keep(); render(); } },
    told.axes.map((each) => el("option", { value: each.name, selected: each.name === by }, each.name)));
  const inLeaf = state.leaf ? [el("button", { class: "quiet", onclick: () => { state.leaf = ""; keep(); render(); } }, "← all leaves")] : [];
  fill(stage, el("div", { class: "head" }, el("div", { class: "choices" }, el("label", { for: "by" }, "on the axis of"), axis, ...inLeaf,
    el("span", { class: "soft" }, scaleWords(found))),
    el("p", { class: "legend" }, mark("b3", "data manifest"), mark("b0", "data file"), mark("hatched", "removed"), mark("out", "ruled out by the filter"),
      el("span", { class: "soft" }, "width is the range, height the files; what overlaps stands on top of each other"))), part);
  drawing = null;
  scale(part, found, { pick });
  byId("status").textContent = visible(`To scale: ${scaleWords(found)}`);
}

function scaleWords(found) {
  const what = found.leaf ? "files of one leaf" : "leaves and files of the root";
  const grouped = found.bars.length < found.objects ? `, in ${found.bars.length} groups of neighbours` : "";
  const nowhere = found.unplaced ? `; ${found.unplaced} without bounds` : "";
  return `${found.objects.toLocaleString("en-US")} ${what}${grouped}${nowhere}`;
}

function legend() {
  return el("p", { class: "legend" }, mark("c0", "data file"), mark("c1", "delete"), mark("ADDED", "came now"), mark("went", "went now"),
    mark("k3", "data manifest"), mark("k4", "delete manifest"), mark("k3 new", "made now"), mark("k3 group", "several together"),
    mark("outbit", "removed by a manifest DV"), mark("now", "removed now"), mark("out", "ruled out by the filter"));
}

const mark = (kind, words) => el("span", {}, el("i", { class: `mark ${kind}` }), words);

function pick(what, given, thing) {
  if (what === "scale") choose("scale");
  else beside.entry(table(), here(), { ...given, leaf: what === "leaf" ? "" : given.leaf }, thing);
}

function goTo(snapshot) {
  const at = line.findIndex((each) => each.snapshot_id === snapshot);
  if (at >= 0) { go(at); choose("film"); return; }
  // It is on another line: that of a branch which holds it or, where none does, its own.
  const holder = told.refs.find((each) => each.type === "branch" && upto(each.snapshot_id).some((one) => one.snapshot_id === snapshot));
  Object.assign(state, { branch: holder?.name ?? state.branch, at: snapshot, leaf: "", view: "film" });
  keep();
  start();
}

/** A snapshot and those before it, as far as they are known, the oldest first. */
function upto(snapshot) {
  const by = new Map(told.snapshots.map((each) => [each.snapshot_id, each]));
  const found = [];
  for (let each = by.get(snapshot); each; each = by.get(each.parent_id)) {
    found.unshift(each);
    by.delete(each.snapshot_id);
  }
  return found;
}

// --- the filter -------------------------------------------------------------------------------

async function applyFilter({ quiet = false } = {}) {
  const asked = state.where;
  const at = here();
  box.set(asked);
  if (!asked) {
    pruned = null;
    box.show(null);
    render();
    return;
  }
  if (!quiet) box.busy();
  try {
    const found = await ask(table(), "pruned", { where: asked, at });
    if (asked !== state.where || at !== here()) return;
    pruned = found;
    box.show(found);
  } catch (error) {
    if (asked !== state.where || at !== here()) return;
    pruned = null;
    box.failed(error.message);
  }
  render({ animate: false });
}

// --- time -------------------------------------------------------------------------------------

function toggle() {
  if (timer) return pause();
  if (index >= line.length - 1) go(0, { animate: false });
  below.playing(true);
  const step = () => {
    if (index >= line.length - 1) return pause();
    go(index + 1);
    timer = setTimeout(step, STEP_MS);
  };
  timer = setTimeout(step, 350);
}

function pause() {
  clearTimeout(timer);
  timer = null;
  below.playing(false);
}

addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range";
  if (event.key === "Escape") { beside.close(); event.target.blur?.(); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const does = {
    ArrowLeft: () => { pause(); go(index - 1); }, ArrowRight: () => { pause(); go(index + 1); },
    Home: () => { pause(); go(0); }, End: () => { pause(); go(line.length - 1); },
    "/": () => box.focus(), "?": help, r: () => { forget(); start(); },
  }[event.key];
  const view = VIEWS[Number(event.key) - 1];
  if (does) does();
  else if (view && event.key !== " ") choose(view[0]);
  else if (event.key === " " && !/^(BUTTON|SUMMARY)$/.test(event.target.tagName)) toggle();
  else return;
  event.preventDefault();
});
let resized = null;
let wide = 0;
new ResizeObserver(() => {
  if (stage.clientWidth === wide) return;
  clearTimeout(resized);
  resized = setTimeout(() => {
    const first = wide === 0;
    wide = stage.clientWidth;
    if (!line.length || first) return;
    below.show(index);
    // Tables flow by themselves; drawings are made for a width.
    if (["film", "scale", "branches"].includes(state.view)) render({ animate: false });
  }, 120);
}).observe(stage);
addEventListener("hashchange", () => { read(); start(); });

// --- beginning --------------------------------------------------------------------------------

function waiting() {
  fill(stage, el("p", { class: "padded soft" }, "…"));
}

function failed(error) {
  drawing = null;
  if (error instanceof Refusal && error.status === 401) return askForToken();
  fill(stage, el("p", { class: "padded wrong", role: "alert" }, error.message));
}

function askForToken() {
  const name = el("input", { type: "text", id: "client", autocomplete: "username", placeholder: "empty for a token" });
  const secret = el("input", { type: "password", id: "secret", autocomplete: "current-password" });
  const wrong = el("p", { class: "wrong", role: "alert" });
  fill(stage, el("form", { class: "padded enter", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await enter(name.value.trim(), secret.value);
      forget();
      await begin();
    } catch (error) {
      fill(wrong, el("span", {}, error.message));
    }
  } }, el("h2", {}, "This server asks who you are"), el("label", { for: "client" }, "Client"), name,
    el("label", { for: "secret" }, "Secret, or token"), secret, el("button", { type: "submit" }, "Enter"), wrong));
}

async function start() {
  pause();
  drawing = null;
  pruned = null;
  document.title = visible(`${state.table} · icetree`);
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
  if (!table()) {
    drawTop();
    fill(stage, el("p", { class: "padded" }, state.table ? `There is no table ${state.table} that may be read here.` : "There are no tables that may be read here."));
    return;
  }
  try {
    told = await ask(table(), "history", { at: state.branch });
  } catch (error) {
    drawTop();
    failed(error);
    return;
  }
  const by = new Map(told.snapshots.map((each) => [each.snapshot_id, each]));
  line = told.line.map((id) => by.get(id)).filter(Boolean);
  if (state.at && !line.some((each) => each.snapshot_id === state.at) && by.has(state.at)) line = upto(state.at);
  const at = line.findIndex((each) => each.snapshot_id === state.at);
  index = at >= 0 ? at : Math.max(0, line.length - 1);
  drawTop();
  below.over(line);
  below.show(index);
  box.set(state.where);
  await render({ animate: false });
  if (state.where) await applyFilter();
  const costs = ask(table(), "costs", { at: line.at(-1)?.snapshot_id });
  costs.then((found) => { below.told(found); below.show(index); }, (error) => below.failed(error.message));
}

async function begin() {
  try {
    known = await tables();
  } catch (error) {
    drawTop();
    failed(error);
    return;
  }
  if (!state.table) state.table = known[0]?.table ?? "";
  if (file && !state.where) state.where = file.where ?? "";
  await start();
}

read();
begin();
