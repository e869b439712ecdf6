// Numbers, sizes, times and names as people read them. The same rules as icetree/picture/words.py.

const ACTING =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]/g;
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A text in which every character is only seen: none turns the writing, none hides another. */
export function visible(text) {
  return String(text ?? "").replace(ACTING, (each) => {
    const code = each.charCodeAt(0);
    if (SHORT[each]) return SHORT[each];
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

export function number(value) {
  if (value === null || value === undefined) return "?";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"]]) {
    if (value >= size) return `${Number((value / size).toPrecision(3))}${unit}`;
  }
  return Math.round(value).toLocaleString("en-US");
}

export function counted(value, noun, plural) {
  return `${number(value)} ${value === 1 ? noun : plural ?? `${noun}s`}`;
}

export function size(value) {
  if (value === null || value === undefined) return "?";
  for (const [unit, factor] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (value >= factor) return `${(value / factor).toFixed(1)} ${unit}`;
  }
  return `${value} B`;
}

export function moment(iso) {
  return String(iso ?? "").replace("T", " ").replace(/\.\d+Z$/, " UTC");
}

/** How long something took, or lies apart, in the largest unit that says it. */
export function lasting(ms) {
  for (const [unit, factor] of [["days", 864e5], ["h", 36e5], ["min", 6e4], ["s", 1e3]]) {
    if (ms >= factor * (unit === "days" ? 2 : 1)) return `${Number((ms / factor).toPrecision(3))} ${unit}`;
  }
  return `${Math.max(0, Math.round(ms))} ms`;
}

/** A file's name without folders and extension, long ids cut. */
export function shortName(path) {
  const name = String(path ?? "").replace(/\/+$/, "").split("/").pop();
  return visible(
    name
      .replace(/\.(parquet|avro|orc|puffin)$/, "")
      .replace(/([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "$1"),
  );
}

export const CONTENT = [
  "data file",
  "data DV",
  "equality delete",
  "data manifest",
  "delete manifest",
  "manifest DV",
];
