// The film: a snapshot's root and leaves; from one frame to the next, things go where they went.

import * as d3 from "d3";
import "d3-transition";
import { room } from "./dom.js";
import { CONTENT, counted, number, shortName, size, visible } from "./words.js";

const PAD = 16;
/** A card: what it keeps free at its sides, how narrow it may be, how high a line is, how wide a letter. */
const EDGE = 10;
const NARROWEST = 112;
const LINE = 16;
const WIDTH = { range: 7.1, facts: 6.1, name: 5.7 };

/** Draw into a part of the page; `pick` is told what was chosen, with how it is asked for. */
export function film(part, { pick }) {
  const svg = d3.select(part).append("svg").attr("class", "film").attr("role", "group");
  const links = svg.append("g").attr("class", "links").attr("aria-hidden", "true");
  const rootCard = svg.append("g").attr("class", "card root").attr("tabindex", 0).attr("role", "img");
  rootCard.append("rect").attr("class", "box").attr("rx", 12);
  const title = rootCard.append("text").attr("class", "title").attr("x", PAD).attr("y", 26);
  const facts = rootCard.append("text").attr("class", "facts").attr("text-anchor", "end").attr("y", 26);
  const more = rootCard.append("text").attr("class", "faint").attr("x", PAD);
  const leaves = svg.append("g").attr("class", "leaves").attr("role", "group").attr("aria-label", "Leaves");
  const cells = svg.append("g").attr("class", "cells").attr("role", "group").attr("aria-label", "Files of the root");
  let last = null;

  function show(frame, { animate = true, pruned = null } = {}) {
    const width = room(part);
    const still = !animate || !last || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const time = still ? 0 : 750;
    const place = layout(frame, width);
    svg.attr("viewBox", `0 0 ${width} ${place.height}`).attr("width", width).attr("height", place.height)
      .attr("aria-label", described(frame));

    title.text(frame.is_tree ? "Root" : "Manifest list");
    facts.attr("x", width - PAD).text(rootFacts(frame.root));
    rootCard.attr("aria-label", `Root: ${rootFacts(frame.root)}`).style("cursor", "default");
    rootCard.select("rect").transition().duration(time)
      .attr("width", width - 2).attr("x", 1).attr("y", 1).attr("height", place.root);
    const hidden = frame.root.counts.filter((each) => each.content < 3)
      .reduce((sum, each) => sum + each.objects, 0) - frame.root.cells.length;
    more.attr("y", place.root - 12)
      .text(hidden > 0 ? `and ${counted(hidden, "more entry", "more entries")}`
        : frame.root.cells.length ? "" : "no files of its own: all are in leaves");

    // Numbers of leaves are those of one root.
    const kept = pruned?.snapshot_id === frame.snapshot_id ? pruned?.kept : null;
    for (const each of frame.leaves) each.left = left(each, pruned, kept);
    drawLeaves(frame, place, time, pruned);
    drawCells(frame, place, time, pruned);
    last = { frame, place };
  }

  function drawCells(frame, place, time, pruned) {
    const before = last;
    const out = new Map((pruned?.cells ?? []).map((each) => [cellKey(each), each.by]));
    const fate = (each) => (each.status === "DELETED" ? undefined : out.get(cellKey(each)));
    const chosen = (each) => pick("entry", { file_path: each.file_path }, each);
    cells.selectAll("g.cell").data(frame.root.cells, cellKey).join(
      (enter) => {
        const made = enter.append("g").attr("class", "cell").attr("opacity", 0).attr("tabindex", 0).attr("role", "button")
          .attr("transform", (_, at) => `translate(${place.cell(at).x},${time ? -24 : place.cell(at).y})`)
          .on("click", (_, each) => chosen(each))
          .on("keydown", (event, each) => event.key === "Enter" && chosen(each));
        made.append("rect").attr("rx", 3.5);
        made.append("path").attr("class", "strike");
        made.append("title");
        return made;
      },
      (update) => update,
      (exit) => exit.each(function (each) {
        const target = each.status === "DELETED" ? null : home(each, frame, place);
        const going = d3.select(this).attr("tabindex", null).transition().duration(time).ease(d3.easeCubicIn);
        if (target) going.attr("transform", `translate(${target.x},${target.y}) scale(.5)`).remove();
        else going.attr("opacity", 0).remove();
      }),
    )
      .attr("class", (each) => `cell c${each.content} ${each.status} ${fate(each) ? "skipped" : ""}`)
      .attr("aria-label", (each) => cellTitle(each, fate(each)))
      .call((all) => all.select("title").text((each) => cellTitle(each, fate(each))))
      .call((all) => all.select("rect").attr("width", place.size).attr("height", place.size))
      .call((all) => all.select("path").attr("d", `M3,${place.size - 3}L${place.size - 3},3`))
      .transition().duration(time).delay((each) => (time && each.status === "ADDED" && before ? time * 0.45 : 0))
      .attr("opacity", 1)
      .attr("transform", (_, at) => `translate(${place.cell(at).x},${place.cell(at).y})`);
  }

  function drawLeaves(frame, place, time, pruned) {
    const shown = leaves.selectAll("g.leaf").data(frame.leaves, leafKey).join(
      (enter) => {
        const made = enter.append("g").attr("tabindex", 0).attr("role", "button").attr("opacity", 0)
          .attr("transform", (each) => {
            const at = place.leaf(each);
            return `translate(${at.x + at.w * 0.25},${place.root - 8}) scale(.5)`;
          });
        made.append("rect").attr("class", "box").attr("rx", 9);
        made.append("g").attr("class", "words");
        made.append("g").attr("class", "bits");
        made.append("text").attr("class", "name").attr("x", 10);
        made.append("title");
        return made;
      },
      (update) => update,
      (exit) => exit.each(function (each) {
        const target = fold(each, frame, place);
        const going = d3.select(this).attr("class", "leaf going").transition().duration(time).ease(d3.easeCubicInOut);
        if (target) going.attr("transform", `translate(${target.x},${target.y}) scale(.4)`);
        going.attr("opacity", 0).remove();
      }),
    );
    shown.attr("class", (each) => {
      const skipped = each.left === 0 ? "skipped" : "";
      return `leaf k${each.content} ${each.is_new ? "new" : ""} ${skipped} ${each.objects > 1 ? "group" : ""}`;
    })
      .attr("aria-label", (each) => leafTitle(each, pruned))
      .on("click", (_, each) => choose(each))
      .on("keydown", (event, each) => event.key === "Enter" && choose(each));
    shown.select("title").text((each) => leafTitle(each, pruned));
    shown.each(function (each) {
      const at = place.leaf(each);
      const own = d3.select(this);
      own.select(".box").attr("width", at.w).attr("height", at.h);
      own.select(".words").selectAll("text").data(cardLines(each, place.broken)).join("text")
        .attr("class", (line) => line.kind).attr("x", EDGE).attr("y", (_, row) => 20 + row * LINE)
        .text((line) => clip(line.text, at.w - 2 * EDGE, WIDTH[line.kind]));
      own.select(".name").attr("y", at.h - 9)
        .text(clip(each.objects > 1 ? counted(each.objects, "leaf", "leaves") : shortName(each.file_path), at.w - 2 * EDGE, WIDTH.name));
      bits(own.select(".bits"), each, at, time, place.head, place.bit);
    });
    shown.transition().duration(time).delay(time ? time * 0.25 : 0).attr("opacity", 1)
      .attr("transform", (each) => `translate(${place.leaf(each).x},${place.leaf(each).y})`);
    links.selectAll("path").data(frame.leaves, leafKey).join(
      (enter) => enter.append("path").attr("opacity", 0),
      (update) => update,
      (exit) => exit.remove(),
    )
      .attr("class", (each) => `k${each.content}`)
      .transition().duration(time).delay(time ? time * 0.4 : 0).attr("opacity", 1)
      .attr("d", (each) => {
        const at = place.leaf(each);
        const x = at.x + at.w / 2;
        const from = PAD + (x / place.width) * (place.width - 2 * PAD);
        const y = place.root;
        return `M${from},${y}C${from},${(y + at.y) / 2} ${x},${(y + at.y) / 2} ${x},${at.y}`;
      });
  }

  function choose(each) {
    if (each.objects > 1) pick("scale", {}, each);
    else pick("leaf", { file_path: each.file_path }, each);
  }

  return { show };
}

/** A leaf's entries in the order that it holds them; those that its manifest DV removes are out. */
function bits(part, leaf, at, time, head, bit) {
  const columns = across(at.w, bit);
  const per = Math.max(1, (leaf.entries ?? leaf.files) / leaf.cells);
  const shares = d3.range(leaf.cells).map((cell) => ({
    out: (leaf.out?.[cell] ?? 0) / per, now: (leaf.out_now?.[cell] ?? 0) / per,
  }));
  part.attr("transform", `translate(${EDGE},${head})`);
  part.selectAll("rect").data(shares).join("rect")
    .attr("width", bit - 2).attr("height", bit - 2).attr("rx", bit / 5)
    .attr("x", (_, i) => (i % columns) * bit).attr("y", (_, i) => Math.floor(i / columns) * bit)
    .attr("class", (each) => (each.now > 0 ? "now" : each.out > 0 ? "out" : ""))
    .transition().duration(time).delay(time * 0.5)
    .attr("fill-opacity", (each) => 1 - 0.88 * Math.min(1, each.out));
}

function layout(frame, width) {
  // Few things are shown large.
  const size = frame.root.cells.length <= 100 ? 19 : 13;
  const step = size + (size > 15 ? 6 : 4);
  const perRow = Math.max(1, Math.floor((width - 2 * PAD) / step));
  const rows = Math.max(1, Math.ceil(frame.root.cells.length / perRow));
  const root = 42 + rows * step + 22;
  const count = frame.leaves.length;
  const gap = 10;
  // Every card has room for its range, its files and its bytes: of many there are several rows.
  const columns = Math.max(1, Math.min(count, Math.floor((width + gap) / (NARROWEST + gap))));
  const wide = Math.min(300, (width + gap) / columns - gap);
  const broken = frame.leaves.some((each) => cardLines(each, false).some((line) => visible(line.text).length * WIDTH[line.kind] > wide - 2 * EDGE));
  const head = 20 + (broken ? 4 : 2) * LINE - 7;
  const bit = wide >= 140 ? 12 : 8;
  const top = root + 54;
  const tall = (each) => {
    const bitRows = Math.ceil(each.cells / across(wide, bit));
    return head + bitRows * bit + 26;
  };
  const highest = d3.max(frame.leaves, tall) ?? 0;
  const used = Math.min(count, columns) * (wide + gap) - gap;
  const left = Math.max(0, (width - used) / 2);
  const index = new Map(frame.leaves.map((each, at) => [leafKey(each), at]));
  const leafRows = Math.ceil(count / columns);
  return {
    width, root, size, bit, head, broken,
    height: Math.max(root + 4, count ? top + leafRows * (highest + 16) + 4 : root + 70),
    cell: (at) => ({ x: PAD + (at % perRow) * step, y: 42 + Math.floor(at / perRow) * step }),
    leaf: (each) => {
      const at = index.get(leafKey(each)) ?? 0;
      return {
        x: left + (at % columns) * (wide + gap), y: top + Math.floor(at / columns) * (highest + 16),
        w: wide, h: tall(each),
      };
    },
  };
}

/** Where an entry that the root has no more went: to a new leaf of its kind, the nearest by range. */
function home(cell, frame, place) {
  const kind = cell.content === 0 ? 3 : 4;
  const fresh = frame.leaves.filter((each) => each.is_new && each.content === kind);
  const near = nearest(fresh, cell.first, cell.first);
  return near && center(place.leaf(near));
}

/** Where a leaf that is gone was folded to. */
function fold(leaf, frame, place) {
  const near = nearest(frame.leaves.filter((each) => each.is_new && each.content === leaf.content), leaf.first, leaf.last);
  return near && center(place.leaf(near));
}

function nearest(leaves, first, last) {
  const apart = (each) =>
    first === null || each.first === null ? 0 : Math.max(0, each.first - last, first - each.last);
  return d3.least(leaves, apart);
}

/** What a card says, in two lines or, where these are too long for it, in four. */
function cardLines(each, broken) {
  const range = rangeOf(each);
  const [first, ...rest] = range.split(" … ");
  if (!broken) return [{ kind: "range", text: range }, { kind: "facts", text: leafFacts(each).join(" · ") }];
  return [
    { kind: "range", text: first }, { kind: "range", text: rest.length ? `… ${rest.join(" … ")}` : "" },
    ...leafFacts(each).map((text) => ({ kind: "facts", text })),
  ];
}

const across = (wide, bit) => Math.max(1, Math.floor((wide - 2 * EDGE) / bit));
const center = (at) => ({ x: at.x + at.w / 2, y: at.y + 44 });
const cellKey = (each) => `${each.file_path}|${each.affiliated_with ?? ""}`;
const leafKey = (each, at) => each.file_path ?? `${each.content} ${each.first} ${each.objects}`;
const rangeOf = (each) => each.partition || each.words || "no bounds";

function clip(text, room, per) {
  const shown = visible(text);
  const most = Math.floor(room / per);
  return shown.length > most ? `${shown.slice(0, Math.max(1, most - 1))}…` : shown;
}

function leafFacts(each) {
  const held = each.content === 3 ? "file" : "delete";
  const live = each.files - each.removed;
  const of = each.removed ? `${number(live)} of ${counted(each.files, held)}` : counted(each.files, held);
  return [of, size(each.file_size_in_bytes)];
}

/** How many leaves of a card a filter leaves; null where that is not known. */
function left(each, pruned, kept) {
  if (each.numbers) return kept ? each.numbers.filter((at) => kept[at]).length : null;
  const fate = pruned?.leaves?.[each.file_path];
  return fate ? Number(fate.kept) : null;
}

function fateOf(each, pruned) {
  if (each.left === null) return "";
  if (each.numbers) return `; the filter leaves ${number(each.left)} of them`;
  return each.left ? "" : `; skipped by ${pruned.leaves[each.file_path].by.join(" and by ")}`;
}

function leafTitle(each, pruned) {
  const what = each.objects > 1 ? counted(each.objects, CONTENT[each.content]) : `${CONTENT[each.content]} ${shortName(each.file_path)}`;
  return visible(`${what}: ${rangeOf(each)}, ${leafFacts(each).join(", ")}, ${counted(each.rows, "row")}${fateOf(each, pruned)}`);
}

function cellTitle(each, by) {
  const said = { ADDED: "came with this snapshot", EXISTING: "was there before", DELETED: "went with this snapshot" };
  return visible(
    `${CONTENT[each.content]} ${each.partition || each.words}\n${counted(each.rows, "row")}, ` +
    `${size(each.file_size_in_bytes)}, ${said[each.status]}${by ? `; skipped by ${by.join(" and by ")}` : ""}\n${shortName(each.file_path)}`,
  );
}

function rootFacts(root) {
  const own = root.counts.filter((each) => each.content < 3 && each.status !== "DELETED")
    .reduce((sum, each) => sum + each.objects, 0);
  const parts = [counted(root.entries, "entry", "entries")];
  if (own) parts.push(`${counted(own, "file")} of its own`);
  if (root.leaves) parts.push(counted(root.leaves, "leaf", "leaves"));
  if (root.vectors) parts.push(counted(root.vectors, "manifest DV"));
  return [...parts, size(root.file_size_in_bytes)].join(" · ");
}

export function described(frame) {
  return visible(`Snapshot ${frame.sequence_number}, ${frame.operation ?? "unknown"}: ${frame.did.join("; ")}. Root: ${rootFacts(frame.root)}.`);
}
