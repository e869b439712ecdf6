// Below: a column for each commit, what it wrote beside what v3 would have; and the way through time.

import * as d3 from "d3";
import { byId, el, fill } from "./dom.js";
import { counted, lasting, moment, size } from "./words.js";

const HEIGHT = 74;

export function strip({ go, play }) {
  const button = el("button", { class: "play", "aria-label": "Play", title: "Play or pause (space)", onclick: play }, "▶");
  const range = el("input", { type: "range", min: "0", max: "0", value: "0", step: "1", "aria-label": "Snapshot",
    oninput: () => go(Number(range.value), { animate: false }) });
  const chart = el("div", { class: "chart" });
  const said = el("div", { class: "said" });
  const note = el("p", { class: "note" });
  fill(byId("strip"), el("div", { class: "time" }, button, el("div", { class: "track" }, chart, range), said), note);
  let line = [];
  let costs = null;

  function draw(at) {
    chart.replaceChildren();
    const width = Math.max(200, chart.clientWidth);
    const svg = d3.select(chart).append("svg").attr("viewBox", `0 0 ${width} ${HEIGHT}`).attr("width", width)
      .attr("height", HEIGHT).attr("aria-hidden", "true");
    const x = d3.scaleBand().domain(d3.range(line.length)).range([0, width]).paddingInner(line.length > 150 ? 0 : 0.25);
    const by = new Map((costs?.commits ?? []).map((each) => [each.snapshot_id, each]));
    const heights = [...by.values()].flatMap((each) => [each.size_bytes, each.v3_size_bytes ?? 0]);
    // A commit that writes far more than others would flatten them: it is cut, and marked.
    const most = Math.min(d3.max(heights) ?? 1, 3 * (d3.quantile(heights, 0.9) ?? 1)) || 1;
    const y = d3.scaleLinear().domain([0, most]).range([HEIGHT - 12, 10]).clamp(true);
    const wide = Math.min(x.bandwidth(), 36);
    line.forEach((snapshot, index) => {
      const cost = by.get(snapshot.snapshot_id);
      const column = svg.append("g").attr("class", `commit ${index === at ? "here" : ""} ${operation(snapshot)}`)
        .attr("transform", `translate(${x(index) + (x.bandwidth() - wide) / 2},0)`).on("click", () => go(index));
      column.append("rect").attr("class", "room").attr("width", wide).attr("height", HEIGHT);
      if (cost?.v3_size_bytes) {
        column.append("rect").attr("class", "v3").attr("width", wide).attr("y", y(cost.v3_size_bytes))
          .attr("height", y(0) - y(cost.v3_size_bytes));
      }
      if (cost) {
        const inset = cost.v3_size_bytes ? wide * 0.22 : 0;
        column.append("rect").attr("class", "v4").attr("x", inset).attr("width", Math.max(0.6, wide - 2 * inset))
          .attr("y", y(cost.size_bytes)).attr("height", y(0) - y(cost.size_bytes));
      }
      if (cost && Math.max(cost.size_bytes, cost.v3_size_bytes ?? 0) > most) {
        column.append("path").attr("class", "cut").attr("d", `M0,8L${wide / 2},2L${wide},8Z`);
      }
      column.append("rect").attr("class", "what").attr("width", wide).attr("y", HEIGHT - 8).attr("height", 5).attr("rx", 1.5);
    });
    svg.append("text").attr("class", "faint").attr("x", 0).attr("y", 10).text(costs ? size(most) : "");
  }

  function show(at) {
    range.value = at;
    const snapshot = line[at];
    range.setAttribute("aria-valuetext", snapshot ? `${at + 1} of ${line.length}, ${snapshot.operation ?? "unknown"}, ${moment(snapshot.committed_at)}` : "none");
    draw(at);
    fill(said, ...sentences(at));
  }

  function sentences(at) {
    const snapshot = line[at];
    if (!snapshot) return [el("p", {}, "Nothing was ever committed.")];
    const before = line[at - 1];
    const apart = before ? ` · ${lasting(Date.parse(snapshot.committed_at) - Date.parse(before.committed_at))} after the last` : "";
    const cost = costs?.commits.find((each) => each.snapshot_id === snapshot.snapshot_id);
    const said = [
      el("p", { class: "which" }, el("b", {}, `${at + 1} of ${line.length}`), ` ${snapshot.operation ?? "unknown"}`),
      el("p", { class: "when" }, `${moment(snapshot.committed_at)}${apart}`),
    ];
    if (cost) {
      said.push(el("p", { class: "cost v4", title: cost.is_exact ? "" : "Its metadata.json is not there any more: taken as large as the next that is." },
        el("i", { class: "mark v4" }), `wrote ${counted(cost.files, "file")}, ${cost.is_exact ? "" : "about "}${size(cost.size_bytes)}`));
      if (cost.v3_size_bytes) {
        said.push(el("p", { class: "cost v3" }, el("i", { class: "mark v3" }),
          `v3: ${counted(cost.v3_files, "file")}, about ${size(cost.v3_size_bytes)}`));
      }
    }
    return said;
  }

  function told(found) {
    costs = found;
    const until = costs.commits.filter((each) => each.v3_size_bytes);
    const sum = (name) => d3.sum(until, (each) => each[name]);
    note.textContent = costs.v3_left ? `What v3 would have written is not told: ${costs.v3_left}.`
      : until.length ? `Metadata of these ${until.length} commits: ${size(sum("size_bytes"))} in ${counted(sum("files"), "file")}; ` +
        `v3 would have written about ${size(sum("v3_size_bytes"))} in ${counted(sum("v3_files"), "file")} (an estimate in favour of v3).`
      : "";
  }

  return {
    show,
    told,
    over(snapshots) { line = snapshots; range.max = Math.max(0, line.length - 1); },
    failed(message) { note.textContent = `What commits wrote cannot be told: ${message}`; },
    playing(is) {
      button.textContent = is ? "❚❚" : "▶";
      button.setAttribute("aria-label", is ? "Pause" : "Play");
    },
  };
}

export function operation(snapshot) {
  return { append: "append", overwrite: "overwrite", delete: "delete", replace: "replace" }[snapshot.operation] ?? "other";
}
