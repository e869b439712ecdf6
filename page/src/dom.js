// Elements are made here, and nowhere else: what a table says becomes text, never markup.

import { visible } from "./words.js";

const ATTRIBUTES = new Set([
  "class", "id", "type", "role", "for", "name", "value", "placeholder", "title", "hidden", "disabled",
  "tabindex", "min", "max", "step", "autocomplete", "spellcheck", "scope", "colspan", "open", "selected",
]);

/** Make an element; children are elements, or texts that are shown as they are. */
export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === null || value === undefined || value === false) continue;
    else if (ATTRIBUTES.has(name) || name.startsWith("aria-") || name.startsWith("data-")) {
      made.setAttribute(name, value === true ? "" : visible(value));
    } else throw new Error(`no attribute ${name}`);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined)
    .map((each) => (each instanceof Node ? each : tag === "pre" ? String(each).split("\n").map(visible).join("\n") : visible(each))));
  return made;
}

/** Put something in the place of all that a part of the page holds. */
export function fill(part, ...children) {
  part.replaceChildren(...children.flat().filter(Boolean));
  return part;
}

/** How wide a drawing in a part of the page may be. */
export function room(part) {
  const style = getComputedStyle(part);
  return Math.max(300, part.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
}

export const byId = (id) => document.getElementById(id);

/** A table: headings, and rows of cells; numbers stand to the right. */
export function grid(caption, headings, rows, pick) {
  return el(
    "table",
    { class: "grid" },
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, headings.map((each) => el("th", { scope: "col" }, each)))),
    el(
      "tbody",
      {},
      rows.map((row, at) =>
        el(
          "tr",
          pick ? { tabindex: "0", class: "pick", onclick: () => pick(at),
            onkeydown: (event) => event.key === "Enter" && pick(at) } : {},
          row.map((cell) =>
            el("td", { class: typeof cell === "number" ? "number" : cell === null ? "null" : null },
              cell === null || cell === undefined ? "null" : cell instanceof Node ? cell : asText(cell)),
          ),
        ),
      ),
    ),
  );
}

function asText(cell) {
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}
