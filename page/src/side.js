// Beside: the raw entry of what was chosen, the first rows of a file, the changes of a snapshot.

import { ask } from "./ask.js";
import { byId, el, fill, grid } from "./dom.js";
import { CONTENT, counted, number, shortName, size } from "./words.js";

export function side({ zoom }) {
  const part = byId("side");
  let turn = 0;

  function open(title, ...children) {
    part.hidden = false;
    fill(part, el("div", { class: "side-top" }, el("h2", {}, title),
      el("button", { class: "quiet", "aria-label": "Close details", onclick: close }, "✕")), ...children);
  }

  function close() {
    part.hidden = true;
    fill(part);
  }

  /** Show what an entry says; of a data file its rows can be asked for, of a leaf its files. */
  async function entry(table, at, given, thing) {
    const mine = ++turn;
    const body = el("div", { class: "soft" }, "…");
    const what = `${CONTENT[thing.content] ?? "entry"}`;
    open(thing.partition || thing.words || what, el("p", { class: "soft" }, `${what} · ${sizes(thing)}`),
      el("p", { class: "path" }, given.file_path),
      thing.content === 3 ? el("button", { class: "quiet", onclick: () => zoom(given.file_path) }, "Show its files to scale") : null,
      thing.content === 0 ? rowsButton(table, at, given) : null, body);
    try {
      const told = await ask(table, "entry", { at, ...given });
      if (mine === turn) {
        fill(body, ...told.entries.map((each) => el("div", {}, facts(each))),
          el("p", { class: "faint" }, `as it stands in ${shortName(told.within)}`));
      }
    } catch (error) {
      if (mine === turn) fill(body, el("p", { class: "wrong" }, error.message));
    }
    part.querySelector("button")?.focus({ preventScroll: true });
  }

  function rowsButton(table, at, given) {
    const part = el("div", { class: "rows" }, el("button", { class: "quiet", onclick: async () => {
      fill(part, el("p", { class: "soft" }, "reading …"));
      try {
        const told = await ask(table, "rows", { at, ...given });
        fill(part, el("div", { class: "wide" }, grid(
          `The first ${told.rows.length} of ${number(told.record_count)} rows${told.deleted_rows ? `, ${number(told.deleted_rows)} of them deleted` : ""}`,
          told.columns.map((each) => each.name), told.rows)));
      } catch (error) {
        fill(part, el("p", { class: "wrong" }, error.message));
      }
    } }, "Show its first hundred rows"));
    return part;
  }

  return { entry, open, close, isOpen: () => !part.hidden };
}

/** What a snapshot changed: files, and on demand rows. */
export async function feed(part, table, at) {
  const told = await ask(table, "feed", { at });
  const rows = el("div", { class: "rows" });
  const more = el("button", { class: "quiet", onclick: async () => {
    fill(rows, el("p", { class: "soft" }, "reading …"));
    try {
      const found = await ask(table, "feed", { at, rows: "yes" });
      fill(rows, found.rows_left ? el("p", { class: "wrong" }, found.rows_left)
        : el("div", { class: "wide" }, grid(`The first ${found.rows.length} changed rows`, found.columns, found.rows)));
    } catch (error) {
      fill(rows, el("p", { class: "wrong" }, error.message));
    }
  } }, "Show changed rows");
  const shown = told.files.map((each) => [
    each.change === "added" ? "+ added" : "− removed", kind(each), each.record_count, size(each.file_size_in_bytes),
    each.leaf ? shortName(each.leaf) : "root", shortName(each.referenced_data_file ?? each.file_path),
  ]);
  const left = told.added_count + told.removed_count - told.files.length;
  fill(part, el("div", { class: "padded" },
    el("p", {}, `${counted(told.added_count, "file")} came, ${counted(told.removed_count, "file")} went.`),
    shown.length ? el("div", { class: "wide" }, grid("Files that this snapshot changed", ["change", "kind", "rows", "bytes", "tracked in", "file"], shown)) : null,
    left > 0 ? el("p", { class: "soft" }, `and ${number(left)} more: icetree changes tells all`) : null,
    more, rows));
}

/** What `optimize` would do, and why. */
export async function health(part, table, branch) {
  const told = await ask(table, "health", { branch });
  const facts = Object.entries(told.health).filter(([, value]) => value !== null);
  fill(part, el("div", { class: "padded health" },
    el("h2", {}, told.steps.length ? "What icetree optimize would do" : "Nothing is worth doing"),
    el("ol", { class: "steps" }, told.steps.map((step) => el("li", {},
      el("code", {}, step.verb), el("span", {}, step.reason),
      step.cost_bytes ? el("span", { class: "soft" }, `reads and writes about ${size(step.cost_bytes)}`) : null,
      step.left ? el("span", { class: "wrong" }, `left: ${step.left}`) : null))),
    el("dl", { class: "facts" }, facts.flatMap(([name, value]) => [
      el("dt", {}, name.replaceAll("_", " ")),
      el("dd", {}, name.endsWith("bytes") ? size(value) : typeof value === "number" ? (Number.isInteger(value) ? number(value) : value.toFixed(1)) : value)]))));
}

function facts(entry) {
  const { stats, ...rest } = entry;
  const list = (of) => el("dl", { class: "facts raw" }, Object.entries(of).flatMap(([name, value]) => [
    el("dt", {}, name), el("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value))]));
  const columns = Object.entries(stats ?? {}).map(([name, known]) => [
    name, known.lower ?? null, known.upper ?? null, known.values ?? null, known.nulls ?? null]);
  return [list(rest), columns.length ? el("div", { class: "wide" }, grid("Stats", ["column", "lower", "upper", "values", "nulls"], columns)) : ""];
}

function sizes(thing) {
  const files = thing.content === 3 ? `${counted(thing.files, "file")} · ` : "";
  return `${files}${counted(thing.rows, "row")} · ${size(thing.file_size_in_bytes)}`;
}

function kind(each) {
  if (each.content === 1 && String(each.file_format).toLowerCase() === "puffin") return "data DV";
  return ["data file", "position deletes", "equality deletes"][each.content];
}
