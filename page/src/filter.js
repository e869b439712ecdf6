// The filter box: what a condition leaves to be read, and which part of it rules out what.

import { byId, el, fill } from "./dom.js";
import { counted, number, size } from "./words.js";

export function filter({ apply, fixed }) {
  const box = el("input", {
    id: "where", type: "text", autocomplete: "off", spellcheck: "false", disabled: fixed,
    placeholder: fixed ? "A condition is typed in `icetree explore`, not in a file" : "A condition, such as  country = 'DE' and id > 1000",
    "aria-describedby": "left",
  });
  const form = el(
    "form",
    { class: "filter", role: "search", onsubmit: (event) => { event.preventDefault(); apply(box.value.trim()); } },
    el("label", { for: "where" }, "where"),
    box,
    fixed ? null : el("button", { type: "submit", class: "quiet" }, "Apply"),
    fixed ? null : el("button", { type: "button", class: "quiet", onclick: () => { box.value = ""; apply(""); } }, "Clear"),
  );
  const left = el("div", { id: "left" });
  fill(byId("asked"), form, left);

  return {
    set(text) { if (document.activeElement !== box) box.value = text; },
    focus() { box.focus(); box.select(); },
    busy() { fill(left, el("p", { class: "soft" }, "…")); },
    failed(message) { fill(left, el("p", { class: "wrong", role: "alert" }, message)); },
    show(told) { fill(left, ...(told ? shown(told) : [])); },
  };
}

function shown(told) {
  const { planned, by_partitions: parts, full } = told;
  return [
    el("div", { class: "compared" },
      meter("Planned", planned, planned, full, "v4", "files"),
      meter("With partitions alone, as in v3", planned, parts, full, "v3", "v3"),
      meter("Whole scan", full, full, full, "all", "all")),
    el("ul", { class: "parts" }, told.conjuncts.map((part) => reason(part, told.groups))),
    el("details", {}, el("summary", {}, "In the words of icetree explain"), el("pre", {}, told.text)),
  ];
}

/** A way to find what is read: pale, the files that it looks through for that; full, what it reads. */
function meter(name, read, way, full, kind, id) {
  const share = (files) => `${full.files ? Math.max(files ? 1 : 0, (100 * files) / full.files) : 0}%`;
  const bar = el("div", { class: `meter ${kind}` }, el("span", { class: "looked" }), el("span", {}));
  bar.firstChild.style.width = share(way.looked_through);
  bar.lastChild.style.width = share(read.files);
  return el("div", { class: "way", "data-way": id },
    el("b", {}, name), bar,
    el("span", { "data-files": read.files }, `reads ${number(read.files)} of ${counted(full.files, "file")} · ${size(read.file_size_in_bytes)}`),
    el("span", { class: "soft", "data-leaves": way.leaves, "data-looked": way.looked_through },
      `looks through ${counted(way.looked_through, "file")}: opens ${counted(way.leaves, "leaf", "leaves")} · ${size(way.leaf_bytes)}`));
}

function reason(part, groups) {
  const out = groups.filter((each) => !each.kept && each.by.includes(part));
  const kinds = new Map();
  for (const each of out) kinds.set(each.kind, (kinds.get(each.kind) ?? 0) + each.objects);
  const told = [...kinds].map(([kind, objects]) => counted(objects, kind)).join(", ");
  return el("li", { class: out.length ? "works" : "idle" }, el("code", {}, part),
    out.length ? ` rules out ${told}` : " rules out nothing");
}
