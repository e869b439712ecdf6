// To scale: leaves and files on an axis. Width is the range, height the files, hatching what is gone.

import * as d3 from "d3";
import { room } from "./dom.js";
import { CONTENT, counted, number, shortName, size, visible } from "./words.js";

const LEFT = 8;
const AXIS = 34;
const DEPTH = 58;

export function scale(part, told, { pick }) {
  const width = room(part);
  const bars = told.bars.filter((each) => each.first !== null);
  const svg = d3.select(part).append("svg").attr("class", "scale").attr("role", "group")
    .attr("aria-label", visible(`${counted(told.objects, "object")} on the axis of ${told.axis?.name ?? "nothing"}`));
  hatching(svg);
  if (!bars.length) return;
  const low = d3.min(bars, (each) => each.first);
  const high = d3.max(bars, (each) => each.last);
  const pad = (high - low || 1) * 0.01;
  const x = (told.axis.kind === "time" ? d3.scaleUtc() : d3.scaleLinear())
    .domain([low - pad, high + pad]).range([LEFT, width - LEFT]);
  const lanes = packed(bars, (x.invert(LEFT + 2) - x.invert(LEFT)) || 0);
  const tallest = d3.max(bars, (each) => each.files) || 1;
  const lane = Math.max(5, Math.min(64, Math.floor(400 / lanes.length)));
  const tall = d3.scaleSqrt().domain([0, tallest]).range([Math.min(4, lane), lane]);
  const top = DEPTH + 20;
  // A lane is as high as what is in it; the first stands at the bottom.
  const heights = lanes.map((each) => Math.ceil(d3.max(each, (bar) => tall(bar.files))) + 3);
  const floor = top + d3.sum(heights);
  const bottoms = heights.map((_, at) => floor - d3.sum(heights.slice(0, at)));
  const height = floor + AXIS;
  svg.attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height);

  drawDepth(svg, told.depth, x);
  const drawn = svg.append("g").attr("class", "bars").selectAll("g").data(lanes.flatMap((lane, at) => lane.map((bar) => ({ bar, at }))))
    .join("g")
    .attr("class", ({ bar }) => `bar k${bar.content} ${bar.kept === 0 ? "skipped" : ""} ${bar.objects > 1 ? "group" : ""}`)
    .attr("transform", ({ bar, at }) => `translate(${x(bar.first)},${bottoms[at] - tall(bar.files)})`)
    .attr("tabindex", 0).attr("role", "button").attr("aria-label", ({ bar }) => barTitle(bar))
    .on("click", (_, { bar }) => choose(bar, told, pick))
    .on("keydown", (event, { bar }) => event.key === "Enter" && choose(bar, told, pick));
  const wide = ({ bar }) => Math.max(1.5, x(bar.last) - x(bar.first));
  drawn.append("rect").attr("class", "fill").attr("width", wide).attr("height", ({ bar }) => tall(bar.files))
    .attr("rx", ({ bar }) => Math.min(3, tall(bar.files) / 3));
  drawn.filter(({ bar }) => bar.removed > 0).append("rect").attr("class", "gone").attr("fill", "url(#hatch)")
    .attr("width", (each) => wide(each) * (each.bar.removed / each.bar.files)).attr("height", ({ bar }) => tall(bar.files));
  drawn.filter((each) => wide(each) > 70 && tall(each.bar.files) > 13).append("text").attr("x", 6)
    .attr("y", ({ bar }) => tall(bar.files) / 2 + 4)
    .text((each) => fitting(each.bar, wide(each) - 10));
  drawn.append("title").text(({ bar }) => barTitle(bar));
  drawAxis(svg, told, x, height - AXIS + 8);
}

/** Bars that do not touch share a lane; the more lanes, the worse a table is clustered. */
function packed(bars, least) {
  const lanes = [];
  const ends = [];
  for (const bar of d3.sort(bars, (each) => each.first)) {
    let at = ends.findIndex((end) => end <= bar.first);
    if (at < 0) at = lanes.push([]) - 1;
    lanes[at].push(bar);
    ends[at] = Math.max(bar.last, bar.first + least);
  }
  return lanes;
}

function drawDepth(svg, depth, x) {
  if (!depth.length) return;
  const most = d3.max(depth, ([, over]) => over) || 1;
  const y = d3.scaleLinear().domain([0, most]).range([DEPTH, 22]);
  const part = svg.append("g").attr("class", "depth").attr("aria-label", `at most ${most} ranges overlap`);
  part.append("path").attr("d", d3.area().curve(d3.curveStepAfter).x(([at]) => x(at)).y0(DEPTH).y1(([, over]) => y(over))(depth));
  part.append("text").attr("x", LEFT).attr("y", 6).attr("dy", ".5em")
    .text(most === 1 ? "no ranges overlap" : `up to ${number(most)} ranges overlap`);
}

function drawAxis(svg, told, x, top) {
  const axis = d3.axisBottom(x).ticks(8).tickSizeOuter(0);
  if (told.axis.kind === "text") {
    const names = new Map(told.ticks);
    axis.tickValues([...names.keys()]).tickFormat((at) => visible(names.get(at)).slice(0, 14));
  }
  svg.append("g").attr("class", "axis").attr("aria-hidden", "true").attr("transform", `translate(0,${top})`).call(axis);
}

function hatching(svg) {
  const pattern = svg.append("defs").append("pattern").attr("id", "hatch").attr("width", 5).attr("height", 5)
    .attr("patternUnits", "userSpaceOnUse").attr("patternTransform", "rotate(45)");
  pattern.append("rect").attr("class", "hatch-ground").attr("width", 5).attr("height", 5);
  pattern.append("line").attr("class", "hatch-line").attr("y2", 5);
}

function choose(bar, told, pick) {
  if (bar.objects > 1) return;
  if (bar.content === 3) pick("leaf", { file_path: bar.file_path }, bar);
  else pick("entry", { file_path: bar.file_path, leaf: told.leaf }, bar);
}

function barTitle(bar) {
  const what = bar.objects > 1 ? counted(bar.objects, CONTENT[bar.content]) : `${CONTENT[bar.content]} ${shortName(bar.file_path)}`;
  const left = bar.removed ? `, ${number(bar.removed)} of them gone` : "";
  const files = bar.content === 3 ? `${counted(bar.files, "file")}${left}, ` : "";
  const kept = bar.kept === 0 ? "; the filter rules it out" : "";
  return visible(`${what}\n${bar.words}\n${files}${counted(bar.rows, "row")}, ${size(bar.file_size_in_bytes)}${kept}`);
}

function fitting(bar, room) {
  const text = visible(`${bar.words} · ${bar.content === 3 ? counted(bar.files, "file") : size(bar.file_size_in_bytes)}`);
  const most = Math.floor(room / 6.4);
  return text.length <= most ? text : most > 8 ? `${text.slice(0, most - 1)}…` : "";
}
