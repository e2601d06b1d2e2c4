"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
function drawn(tag, attributes, text = "") {
  const made = document.createElementNS("http:" + "//www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

// Numbers for people.
function scaled(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) { value /= base; ++unit; }
  return (unit === 0 && Number.isInteger(value) ? value : value.toPrecision(value < 1 ? 2 : value < 100 ? 3 : 4)) + " " + units[unit];
}
const bytes = value => value === 0 ? "0" : scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
const count = value => value === 0 ? "0" : scaled(value, 1000, ["", "k", "M", "G", "T", "P", "E"]);
const ms = value => value === 0 ? "0" : value < 1 ? scaled(value * 1e3, 1000, ["µs"]) : scaled(value, 1000, ["ms", "s"]);
const plain = value => value === 0 ? "0" : Math.abs(value) < 1e-4 || Math.abs(value) >= 1e5 ? value.toExponential(1) : +value.toPrecision(4) + "";

// A round number without zeros behind its point: "150 µs" for "150.0 µs".
const round = text => text.replace(/\.0+(?= )/, "").replace(/(\.\d*[1-9])0+(?= )/, "$1");
const percent = value => (value < 0 ? "" : "+") + (value * 100).toFixed(1) + " %";

// About `wanted` round numbers from low to high; binary: powers of two.
function ticks(low, high, wanted, binary = false) {
  const rough = (high - low) / wanted || 1;
  let step = binary ? 2 ** Math.ceil(Math.log2(rough)) : 10 ** Math.floor(Math.log10(rough));
  if (!binary) step *= [1, 2, 5, 10].find(times => step * times >= rough);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high * (1 + 1e-9); ++at) found.push(at * step);
  return found;
}

function showTip(event, text) {
  const tip = $("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
}

// Curves of this run, of those that it is compared with, and of those that are opened beside it.
const runs = data.steps.step.length ? [{ name: data.name ?? "this run", steps: data.steps }] : [];
runs.push(...data.compared);

function readSteps(name, text) {
  const [head, ...rows] = text.trim().split(/\r?\n/).map(line => line.split(","));
  const steps = {};
  for (const column of Object.keys(data.steps)) {
    const at = head.indexOf(column);
    if (at < 0) return showTip({ clientX: 200, clientY: 100 }, name + ": no column " + column + "; it is no steps.csv");
    steps[column] = rows.map(row => Number(row[at]));
  }
  runs.push({ name, steps });
}

// The extremes of each pixel column.
function thinned(xs, ys, x, columns) {
  const points = [];
  const low = new Map(), high = new Map();
  ys.forEach((value, i) => {
    if (!Number.isFinite(value)) return;
    const at = Math.floor(x(xs[i]) / columns);
    if (!low.has(at) || value < ys[low.get(at)]) low.set(at, i);
    if (!high.has(at) || value > ys[high.get(at)]) high.set(at, i);
  });
  for (const at of [...low.keys()].sort((a, b) => a - b))
    points.push(...new Set([low.get(at), high.get(at)].sort((a, b) => a - b)));
  return points;
}

function drawCurve(title, column, format, line = null) {
  const [width, height, left, right, top, bottom] = [400, 190, 58, 8, 8, 24];
  const values = runs.flatMap(run => run.steps[column].filter(Number.isFinite)).concat(line ?? []);
  const steps = runs.flatMap(run => run.steps.step);
  const box = element("div", "");
  box.append(element("h3", title));
  if (!steps.length || !values.length) return box;
  const bound = (list, pick) => list.reduce((a, b) => pick(a, b));
  let low = bound(values, Math.min), high = bound(values, Math.max);
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  low = low >= 0 ? Math.max(0, low - room) : low - room;
  high += room;
  const first = bound(steps, Math.min), last = Math.max(first + 1, bound(steps, Math.max));
  const x = step => left + (step - first) / (last - first) * (width - left - right);
  const y = value => height - bottom - (value - low) / (high - low) * (height - top - bottom);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}` });
  for (const at of ticks(low, high, 4)) {
    svg.append(drawn("line", { class: "grid", x1: left, x2: width - right, y1: y(at), y2: y(at) }));
    svg.append(drawn("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, format(at)));
  }
  for (const at of ticks(first, last, 5).filter(Number.isInteger))
    svg.append(drawn("text", { x: Math.min(x(at), width - 14), y: height - 6, "text-anchor": "middle" }, at));
  if (line !== null) svg.append(drawn("path", { d: `M${left},${y(line)}H${width - right}`, stroke: "var(--c4)", "stroke-dasharray": "5 4" }));
  runs.forEach((run, number) => {
    const points = thinned(run.steps.step, run.steps[column], x, 1).map(i => x(run.steps.step[i]).toFixed(1) + "," + y(run.steps[column][i]).toFixed(1));
    if (points.length === 1) points.push(points[0]);
    svg.append(drawn("path", { d: "M" + points.join("L"), stroke: `var(--c${number % 6})`, "stroke-linecap": "round" }));
  });
  svg.addEventListener("mousemove", event => {
    const place = svg.getBoundingClientRect(), scale = Math.min(place.width / width, place.height / height);
    const at = (event.clientX - place.left - (place.width - width * scale) / 2) / scale;
    const step = Math.round(first + (at - left) / (width - left - right) * (last - first));
    const lines = runs.map(run => [run, run.steps.step.indexOf(step)]).filter(([, i]) => i >= 0)
      .map(([run, i]) => run.name + ": " + format(run.steps[column][i] ?? NaN));
    showTip(event, lines.length ? ["step " + step, ...lines].join("\n") : "");
  });
  svg.addEventListener("mouseleave", () => showTip(null, ""));
  box.append(svg);
  return box;
}

function drawCurves() {
  $("charts").replaceChildren(
    drawCurve("Loss", "loss", plain), drawCurve("Learning rate", "learning_rate", plain),
    drawCurve("Gradient norm", "grad_norm", plain),
    drawCurve("Time of a step (dashed: foreseen)", "seconds", value => ms(value * 1e3), data.foreseen_seconds || null));
  $("legend").replaceChildren(...runs.map((run, number) => element("span", run.name, { class: "key", style: `--key: var(--c${number % 6})` })));
  $("charts").style.display = runs.length ? "" : "none";
}

// Memory over time with the queues below it.
const view = { from: 0, to: 1, drag: null };
const [kLeft, kRight, kTop, kStack, kStrip, kRow] = [100, 10, 20, 300, 17, 22];

// Begins, ends and moments of the instructions on the axis that is chosen.
function axisOf(program, axis) {
  const number = program.labels.length;
  const [begin, end] = axis === "instruction"
    ? [program.labels.map((_, i) => i), program.labels.map((_, i) => i + 1)] : program[axis];
  const moment = new Float64Array(number), block = new Int32Array(number), pass = new Int32Array(number);
  let latest = 0, last = 0, of = program.block[0], doing = program.pass[0];
  for (let i = 0; i < number; ++i) {
    if (begin[i] !== null) { latest = Math.max(latest, begin[i]); last = Math.max(last, end[i]); }
    moment[i] = latest;
    if (program.queue[i] === 0) { of = program.block[i]; doing = program.pass[i]; }
    block[i] = of;
    pass[i] = doing;
  }
  return { begin, end, moment, block, pass, last };
}

let chosen = null;
function choose() {
  const program = data.programs[$("program").value];
  const live = program.live[$("tier").value];
  const total = live[0].map((_, i) => live.reduce((sum, purpose) => sum + purpose[i], 0));
  const tier = data.tiers.find(one => one.name === $("tier").value);
  const queues = data.queues.map((name, number) => ({ name, number })).filter(queue => program.queue.includes(queue.number));
  chosen = { program, live, total, tier, queues, axis: $("axis").value, ...axisOf(program, $("axis").value) };
  view.from = 0;
  view.to = chosen.last || 1;
  drawTimeline();
}

// Of each pixel column the instruction with most bytes; where none begins, the one before.
function highest(columns, toX) {
  const best = new Int32Array(columns).fill(-1);
  let before = 0;
  for (let i = 0; i < chosen.total.length; ++i) {
    const at = Math.floor(toX(chosen.moment[i]) - kLeft);
    if (at < 0) before = i;
    else if (at < columns && (best[at] < 0 || chosen.total[i] > chosen.total[best[at]])) best[at] = i;
  }
  const lasts = new Int32Array(columns).fill(-1);
  for (let i = 0; i < chosen.total.length; ++i) {
    const at = Math.floor(toX(chosen.moment[i]) - kLeft);
    if (at >= 0 && at < columns) lasts[at] = i;
  }
  for (let at = 0; at < columns; ++at) {
    if (best[at] < 0) best[at] = before;
    else before = lasts[at];
  }
  return best;
}

function drawTimeline() {
  const canvas = $("timeline"), pen = canvas.getContext("2d"), ratio = devicePixelRatio || 1;
  const width = Math.max(320, canvas.parentElement.clientWidth);
  const rows = kTop + kStack + 8 + 2 * kStrip + 6, height = rows + chosen.queues.length * kRow + 24;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = height + "px";
  pen.scale(ratio, ratio);
  pen.font = "11px system-ui, sans-serif";
  const columns = Math.floor(width - kLeft - kRight);
  const toX = time => kLeft + (time - view.from) / (view.to - view.from) * columns;
  const top = Math.max(chosen.tier.arena_bytes, chosen.tier.peak_bytes) * 1.04;
  const toY = value => kTop + kStack * (1 - value / top);
  const text = (words, x, y, align = "left", ink = "quiet") => {
    pen.fillStyle = colour(ink);
    pen.textAlign = align;
    pen.textBaseline = "middle";
    pen.fillText(words, x, y);
  };
  const best = highest(columns, toX);
  Object.assign(chosen, { best, rows, toX, columns });

  for (const at of ticks(0, top, 6, true)) {
    pen.fillStyle = colour("line");
    pen.fillRect(kLeft, toY(at), columns, 1);
    text(round(bytes(at)), kLeft - 6, toY(at), "right");
  }
  const heights = new Float64Array(columns);
  chosen.live.forEach((purpose, number) => {
    pen.fillStyle = colour("c" + number);
    best.forEach((i, at) => {
      const low = toY(heights[at]), high = toY(heights[at] += purpose[i]);
      if (low > high) pen.fillRect(kLeft + at, high, 1.02, low - high);
    });
  });
  pen.strokeStyle = colour("ink");
  pen.setLineDash([6, 4]);
  pen.beginPath();
  pen.moveTo(kLeft, Math.round(toY(chosen.tier.arena_bytes)) + .5);
  pen.lineTo(kLeft + columns, Math.round(toY(chosen.tier.arena_bytes)) + .5);
  pen.stroke();
  pen.setLineDash([]);
  text("arena " + bytes(chosen.tier.arena_bytes), kLeft + columns - 4, toY(chosen.tier.arena_bytes) - 8, "right");

  drawStrip(pen, rows - 6 - 2 * kStrip, at => chosen.pass[best[at]], pass => data.passes[pass], pass => data.passes[pass], text);
  drawStrip(pen, rows - 6 - kStrip, at => chosen.block[best[at]], block => chosen.program.blocks[block], block => "band" + block % 2, text);
  text("pass", kLeft - 6, rows - 6 - 1.5 * kStrip, "right");
  text("block", kLeft - 6, rows - 6 - .5 * kStrip, "right");
  chosen.queues.forEach((queue, row) => drawQueue(pen, queue, rows + row * kRow, toX, columns, text));
  const unit = chosen.axis === "instruction" ? plain : ms;
  for (const at of ticks(view.from, view.to, Math.max(2, columns / 130)))
    text(round(unit(at)), Math.max(kLeft + 12, Math.min(toX(at), width - 24)), height - 10, "center");
  if (view.drag) {
    pen.fillStyle = colour("accent") + "44";
    pen.fillRect(Math.min(...view.drag), kTop, Math.abs(view.drag[0] - view.drag[1]), height - kTop - 22);
  }
}

// One rectangle for each stretch of equal values.
function drawStrip(pen, y, valueOf, nameOf, inkOf, text) {
  for (let at = 0, from = 0; at < chosen.columns; ++at) {
    if (at + 1 < chosen.columns && valueOf(at + 1) === valueOf(from)) continue;
    pen.fillStyle = colour(inkOf(valueOf(from)));
    pen.fillRect(kLeft + from, y, at + 1 - from, kStrip - 2);
    const name = nameOf(valueOf(from));
    if (pen.measureText(name).width + 4 < at + 1 - from) text(name, kLeft + (from + at + 1) / 2, y + kStrip / 2 - 1, "center", "ink");
    from = at + 1;
  }
}

function drawQueue(pen, queue, y, toX, columns, text) {
  text(queue.name, kLeft - 6, y + kRow / 2, "right");
  pen.fillStyle = colour("line");
  pen.fillRect(kLeft, y + kRow - 2, columns, 1);
  const { program, begin, end } = chosen, inks = [colour("c0"), colour("c3")];
  let filled = -1;
  for (let i = 0; i < program.labels.length; ++i) {
    if (program.queue[i] !== queue.number || begin[i] === null || end[i] < view.from || begin[i] > view.to) continue;
    const from = Math.max(kLeft, toX(begin[i])), to = Math.min(kLeft + columns, toX(end[i]));
    if (to <= filled) continue;  // its pixel is full
    pen.fillStyle = inks[program.block[i] % 2];
    const wide = to - from > 3;
    pen.fillRect(from, y + 3, wide ? to - from - .5 : Math.max(.6, to - from), kRow - 7);
    if (!wide) filled = Math.max(filled, Math.floor(from) + (to - from < .6 ? 1 : 0));
  }
}

function describeInstruction(i) {
  const { program, begin, end, axis } = chosen;
  const time = axis === "instruction" || begin[i] === null ? "" : `\n${ms(end[i] - begin[i])} from ${ms(begin[i])} (${axis})`;
  return `${i}: ${program.labels[i]}\n${program.blocks[program.block[i]]}, ${data.passes[program.pass[i]]}, ${data.queues[program.queue[i]]}${time}`;
}

function pointAt(event) {
  const box = $("timeline").getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  if (view.drag) { view.drag[1] = x; drawTimeline(); return showTip(event, ""); }
  const at = Math.floor(x - kLeft);
  if (at < 0 || at >= chosen.columns) return showTip(event, "");
  const row = Math.floor((y - chosen.rows) / kRow);
  if (y < chosen.rows) {
    const i = chosen.best[at];
    const parts = chosen.live.map((purpose, number) => [purpose[i], data.purposes[number]]).filter(([size]) => size > 0)
      .map(([size, name]) => `${name} ${bytes(size)}`);
    return showTip(event, [bytes(chosen.total[i]) + " in use", ...parts, describeInstruction(i)].join("\n"));
  }
  const queue = chosen.queues[row];
  if (!queue) return showTip(event, "");
  const time = view.from + (x - kLeft) / chosen.columns * (view.to - view.from), near = 2 / chosen.columns * (view.to - view.from);
  let found = -1, distance = near;
  chosen.program.queue.forEach((number, i) => {
    if (number !== queue.number || chosen.begin[i] === null) return;
    const away = Math.max(chosen.begin[i] - time, time - chosen.end[i], 0);
    if (away < distance || (away === 0 && found < 0)) { found = i; distance = away; }
  });
  showTip(event, found < 0 ? queue.name + ": idle" : describeInstruction(found));
}

function endDrag() {
  if (!view.drag) return;
  const [low, high] = view.drag.map(x => view.from + (x - kLeft) / chosen.columns * (view.to - view.from)).sort((a, b) => a - b);
  const wide = Math.abs(view.drag[0] - view.drag[1]) > 4;
  view.drag = null;
  const [from, to] = [low, high].map(time => Math.min(chosen.last, Math.max(0, time)));
  if (wide && to > from) { view.from = from; view.to = to; }
  drawTimeline();
}

function setUpMemory() {
  if (!data.programs.length) { $("memory").hidden = true; return; }
  data.programs.forEach((program, i) => $("program").append(element("option", `${program.name} (${program.runs_per_step} per step)`, { value: i })));
  data.tiers.forEach(tier => $("tier").append(element("option", tier.name, { value: tier.name })));
  if (data.programs.every(program => program.measured)) $("axis").append(element("option", "measured time", { value: "measured" }));
  $("axis").append(element("option", "foreseen time", { value: "foreseen" }), element("option", "instructions", { value: "instruction" }));
  data.purposes.forEach((name, number) => $("purposes").append(element("span", name, { class: "key", style: `--key: var(--c${number})` })));
  $("measured").textContent = `Foreseen: ${data.foreseen_how}. Bytes of the memory that is chosen, of rank ${data.rank}; instructions are coloured by block in turn.`;
  for (const id of ["program", "tier", "axis"]) $(id).addEventListener("change", choose);
  $("whole").addEventListener("click", choose);
  const canvas = $("timeline");
  canvas.addEventListener("mousemove", pointAt);
  canvas.addEventListener("mouseleave", () => showTip(null, ""));
  canvas.addEventListener("mousedown", event => { const x = event.clientX - canvas.getBoundingClientRect().left; view.drag = [x, x]; event.preventDefault(); });
  addEventListener("mouseup", endDrag);
  addEventListener("resize", drawTimeline);
  choose();
}

// Bars by mode, tables, details.
function drawBars() {
  $("modes").hidden = !data.modes.length;
  const charts = [["Kept on the device", "kept_bytes", bytes], ["Saved against keeping all", "freed_bytes", bytes], ["Step, foreseen", "step_seconds", value => ms(value * 1e3)]];
  for (const [title, field, format] of charts) {
    const box = element("div", "");
    box.append(element("h3", title));
    const most = Math.max(...data.modes.map(mode => mode[field])) || 1;
    for (const mode of data.modes) {
      const bar = element("div", mode.name, { class: "bar" }), track = element("div", "");
      track.append(element("i", "", { style: `width: ${100 * mode[field] / most}%` }));
      bar.append(track, element("span", format(mode[field])));
      box.append(bar);
    }
    $("bars").append(box);
  }
}

function fillTable(table, head, rows) {
  const line = (tag, cells, kind = "") => {
    const row = element("tr", "", kind ? { class: kind } : {});
    row.append(...cells.map(cell => element(tag, cell)));
    return row;
  };
  const body = element("tbody", ""), top = element("thead", "");
  top.append(line("th", head));
  body.append(...rows.map(([cells, kind]) => line("td", cells, kind)));
  table.replaceChildren(top, body);
}

function fillLayers() {
  $("layers").hidden = !data.layers.length;
  const columns = [
    ["parameters", layer => layer.parameter_bytes, bytes], ["gradients", layer => layer.gradient_bytes, bytes],
    ["optimizer", layer => layer.optimizer_bytes, bytes],
    ...data.actions.map((name, i) => ["saved: " + name, layer => layer.saved_bytes[i], bytes]),
    ["FLOP / step", layer => layer.flops, count], ["forward", layer => layer.forward_ms, ms], ["backward", layer => layer.backward_ms, ms],
    ["update", layer => layer.update_ms, ms], ["moving", layer => layer.moving_ms, ms], ["recompute", layer => layer.recompute_ms, ms],
    ["could be remade", layer => layer.recomputable_bytes, bytes], ["in", layer => layer.recomputable_ms, ms]];
  const rows = data.layers.map(layer => [[layer.block, ...columns.map(([, value, format]) => format(value(layer)))], ""]);
  const sum = value => data.layers.reduce((total, layer) => total + value(layer), 0);
  rows.push([["total", ...columns.map(([, value, format]) => format(sum(value)))], "total"]);
  fillTable($("table"), ["block", ...columns.map(([name]) => name)], rows);
}

function addCard(title, value, note) {
  const card = element("div", title, { class: "card" });
  card.append(element("b", value), element("small", note));
  $("cards").append(card);
}

function fillPage() {
  $("subject").textContent = `${data.model}, rank ${data.rank} of ${data.ranks}, on ${data.device}`;
  $("failure").textContent = `It failed: ${data.failure}`;
  $("failure").hidden = !data.failure;
  for (const tier of data.tiers) addCard(`Peak, ${tier.name}`, bytes(tier.peak_bytes), `arena ${bytes(tier.arena_bytes)}; ${tier.peak_at}`);
  addCard("Step, foreseen", ms(data.foreseen_seconds * 1e3), data.foreseen_how);
  const leftOut = Math.min(2, Math.max(0, data.steps.seconds.length - 1));  // as warming_steps.h
  const seconds = data.steps.seconds.slice(leftOut);
  if (seconds.length) {
    const mean = seconds.reduce((a, b) => a + b) / seconds.length;
    addCard("Step, measured", ms(mean * 1e3), `mean of ${seconds.length}${leftOut ? ` without the first${leftOut > 1 ? ` ${leftOut}` : ""}` : ""}; ${percent(mean / data.foreseen_seconds - 1)} against what was foreseen`);
  }
  for (const id of ["summary", "plan", "machine"]) $(id).textContent = data[id];
  fillTable($("settings"), ["setting", "value", "from", "where"], data.settings.map(row => [row, ""]));
}

// Dark where the system is, until the button says otherwise.
const system = matchMedia("(prefers-color-scheme: dark)");
function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  $("theme").textContent = dark ? "Light" : "Dark";
  if (chosen) drawTimeline();
}
$("theme").addEventListener("click", () => setTheme(!document.documentElement.classList.contains("dark")));
system.addEventListener("change", () => setTheme(system.matches));
$("runs").addEventListener("change", async event => {
  for (const file of event.target.files) readSteps(file.name, await file.text());
  drawCurves();
});

setTheme(system.matches);
fillPage();
drawCurves();
setUpMemory();
drawBars();
fillLayers();
