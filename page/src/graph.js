// Branches and tags as a graph: a dot for each snapshot, the newest on top, a lane for each line.

import * as d3 from "d3";
import { room } from "./dom.js";
import { moment, visible } from "./words.js";
import { operation } from "./strip.js";

const ROW = 26;
const LANE = 22;

export function graph(part, told, here, { go }) {
  const shown = d3.sort(told.snapshots, (one, other) =>
    d3.descending(one.sequence_number, other.sequence_number) || d3.descending(one.committed_at, other.committed_at)).slice(0, 400);
  const lanes = laned(shown, told.line);
  const widest = 1 + (d3.max(lanes.values()) ?? 0);
  const left = 18 + widest * LANE;
  const row = new Map(shown.map((each, at) => [each.snapshot_id, at]));
  const names = d3.group(told.refs, (each) => each.snapshot_id);
  const x = (each) => 18 + lanes.get(each.snapshot_id) * LANE;
  const y = (each) => 20 + row.get(each.snapshot_id) * ROW;
  const width = room(part);
  const svg = d3.select(part).append("svg").attr("class", "graph").attr("role", "list").attr("aria-label", "Snapshots, the newest first")
    .attr("viewBox", `0 0 ${width} ${shown.length * ROW + 20}`).attr("width", width).attr("height", shown.length * ROW + 20);
  const byId = new Map(shown.map((each) => [each.snapshot_id, each]));
  svg.append("g").attr("class", "lines").attr("aria-hidden", "true").selectAll("path")
    .data(shown.filter((each) => byId.has(each.parent_id))).join("path")
    .attr("d", (each) => {
      const parent = byId.get(each.parent_id);
      return `M${x(each)},${y(each)}C${x(each)},${y(each) + ROW} ${x(parent)},${y(parent) - ROW} ${x(parent)},${y(parent)}`;
    });
  const rows = svg.selectAll("g.snapshot").data(shown).join("g")
    .attr("class", (each) => `snapshot ${operation(each)} ${each.snapshot_id === here ? "here" : ""}`)
    .attr("role", "listitem").attr("tabindex", 0)
    .attr("aria-label", (each) => visible(`${each.operation}, ${moment(each.committed_at)} ${(names.get(each.snapshot_id) ?? []).map((ref) => `${ref.type} ${ref.name}`).join(", ")}`))
    .on("click", (_, each) => go(each.snapshot_id))
    .on("keydown", (event, each) => event.key === "Enter" && go(each.snapshot_id));
  rows.append("rect").attr("class", "room").attr("y", (each) => y(each) - ROW / 2).attr("width", width).attr("height", ROW);
  rows.append("circle").attr("cx", x).attr("cy", y).attr("r", 6);
  rows.each(function (each) {
    const own = d3.select(this);
    let at = left + 6;
    for (const ref of names.get(each.snapshot_id) ?? []) {
      const text = visible(ref.name).slice(0, 30);
      const wide = text.length * 7 + 16;
      const tag = own.append("g").attr("class", `ref ${ref.type}`).attr("transform", `translate(${at},${y(each) - 9})`);
      tag.append("rect").attr("width", wide).attr("height", 18).attr("rx", ref.type === "tag" ? 3 : 9);
      tag.append("text").attr("x", 8).attr("y", 13).text(text);
      at += wide + 6;
    }
    own.append("text").attr("x", at).attr("y", y(each) + 4).text(`${each.operation ?? "unknown"}`);
    own.append("text").attr("class", "facts").attr("x", at + 78).attr("y", y(each) + 4).text(summed(each));
    own.append("text").attr("class", "faint").attr("x", width - 8).attr("y", y(each) + 4).attr("text-anchor", "end").text(moment(each.committed_at));
  });
}

function laned(shown, line) {
  const main = new Set(line);
  const lanes = new Map();
  const taken = [];
  for (const each of shown) {
    if (main.has(each.snapshot_id)) lanes.set(each.snapshot_id, 0);
  }
  for (const each of shown) {
    if (lanes.has(each.snapshot_id)) continue;
    let lane = taken.findIndex((wanted) => wanted === each.snapshot_id);
    if (lane < 0) lane = taken.findIndex((wanted) => wanted === null);
    if (lane < 0) lane = taken.push(null) - 1;
    lanes.set(each.snapshot_id, lane + 1);
    taken[lane] = main.has(each.parent_id) ? null : each.parent_id;
  }
  return lanes;
}

function summed(each) {
  const said = [];
  const told = each.summary;
  if (told["added-data-files"]) said.push(`+${told["added-data-files"]} files`);
  if (told["deleted-data-files"]) said.push(`−${told["deleted-data-files"]} files`);
  if (told["added-delete-files"]) said.push(`+${told["added-delete-files"]} deletes`);
  if (told["total-records"]) said.push(`${told["total-records"]} rows`);
  return visible(said.join(" · "));
}
