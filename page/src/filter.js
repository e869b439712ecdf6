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
      meter("Planned", planned.files, full.files, planned.file_size_in_bytes, planned, "v4", "files"),
      meter("With partitions alone, as in v3", planned.files, full.files, planned.file_size_in_bytes, parts, "v3", "v3"),
      meter("Whole scan", full.files, full.files, full.file_size_in_bytes, full, "all", "all")),
    el("ul", { class: "parts" }, told.conjuncts.map((part) => reason(part, told.groups))),
    el("details", {}, el("summary", {}, "In the words of icetree explain"), el("pre", {}, told.text)),
  ];
}

function meter(name, files, of, bytes, leaves, kind, id) {
  const bar = el("div", { class: `meter ${kind}` }, el("span", {}));
  bar.firstChild.style.width = `${of ? Math.max(files ? 1 : 0, (100 * files) / of) : 0}%`;
  return el("div", { class: "way", "data-way": id },
    el("b", {}, name), bar,
    el("span", { "data-files": files }, `${number(files)} of ${counted(of, "file")} · ${size(bytes)}`),
    el("span", { class: "soft", "data-leaves": leaves.leaves }, `opens ${counted(leaves.leaves, "leaf", "leaves")} · ${size(leaves.leaf_bytes)}`));
}

function reason(part, groups) {
  const out = groups.filter((each) => !each.kept && each.by.includes(part));
  const kinds = new Map();
  for (const each of out) kinds.set(each.kind, (kinds.get(each.kind) ?? 0) + each.objects);
  const told = [...kinds].map(([kind, objects]) => counted(objects, kind)).join(", ");
  return el("li", { class: out.length ? "works" : "idle" }, el("code", {}, part),
    out.length ? ` rules out ${told}` : " rules out nothing");
}
