// Reads /metrics every two seconds and shows what changed: rates of counters, quantiles of histograms,
// gauges as they are. Nothing here knows more than /metrics says.
"use strict";

const PERIOD_MS = 2000;
const PATIENCE_MS = 5000; // a process that stands still takes connections and never answers
const KEPT = 90; // samples: three minutes

// Prometheus text as a map from "name{labels}" to its number.
function parse(text) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const space = line.lastIndexOf(" ");
    const value = Number(line.slice(space + 1));
    if (!Number.isNaN(value)) samples.set(line.slice(0, space), value);
  }
  return samples;
}

function labelsOf(key) {
  const labels = {};
  for (const [, name, value] of key.matchAll(/([a-z_]+)="([^"]*)"/g)) labels[name] = value;
  return labels;
}

const familyOf = (key) => key.split("{")[0];

// A counter's increase; a server that started again began at zero.
function increase(now, before, key) {
  const value = now.samples.get(key) ?? 0;
  const earlier = before.samples.get(key) ?? 0;
  return value >= earlier ? value - earlier : value;
}

function rate(now, before, key) {
  return (increase(now, before, key) * 1000) / (now.at - before.at);
}

// Buckets of a histogram between two samples: pairs of upper bound in seconds and how many up to it.
function buckets(now, before, family, wanted) {
  const found = [];
  for (const key of now.samples.keys()) {
    if (familyOf(key) !== family + "_bucket") continue;
    const { le, ...labels } = labelsOf(key);
    if (Object.entries(wanted).some(([name, value]) => labels[name] !== value)) continue;
    found.push([le === "+Inf" ? Infinity : Number(le), increase(now, before, key)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}

// The upper bound of the bucket in which the quantile lies, seconds; null without samples.
function quantile(cumulative, part) {
  const total = cumulative.length ? cumulative[cumulative.length - 1][1] : 0;
  if (total === 0) return null;
  return cumulative.find(([, count]) => count >= part * total)[0];
}

function duration(seconds) {
  if (seconds === null) return "–";
  if (seconds === Infinity) return "more";
  if (seconds < 0.001) return `≤ ${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `≤ ${+(seconds * 1e3).toPrecision(3)} ms`;
  return `≤ ${+seconds.toPrecision(3)} s`;
}

function number(value) {
  if (value >= 1e9) return (value / 1e9).toFixed(2) + " G";
  if (value >= 1e6) return (value / 1e6).toFixed(2) + " M";
  if (value >= 1e4) return (value / 1e3).toFixed(1) + " k";
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(2);
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// A line of the last minutes, from zero to its maximum.
function sparkline(values) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 180 36");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("preserveAspectRatio", "none");
  const most = Math.max(...values, 1e-9);
  const step = 180 / (KEPT - 1);
  const start = KEPT - values.length;
  const points = values.map((value, i) => `${((start + i) * step).toFixed(1)},${(34 - (32 * value) / most).toFixed(1)}`);
  const line = document.createElementNS(space, "polyline");
  line.setAttribute("points", points.join(" "));
  svg.append(line);
  return svg;
}

const history = []; // { at, samples }, oldest first

function rates(key) {
  return history.slice(1).map((now, i) => rate(now, history[i], key));
}

function card(title, value, values, note = "") {
  return element("div", { className: "card" },
    element("h3", { textContent: title }),
    element("p", { className: "value", textContent: value }),
    ...(values ? [sparkline(values)] : []),
    ...(note ? [element("small", { textContent: note })] : []));
}

function cards(now, before) {
  const shown = [];
  const counter = (title, key, note) => {
    if (now.samples.has(key)) shown.push(card(title, number(rate(now, before, key)) + " /s", rates(key), note));
  };
  const gauge = (title, key, write, note) => {
    if (!now.samples.has(key)) return;
    shown.push(card(title, write(now.samples.get(key)), history.map((at) => at.samples.get(key) ?? 0), note));
  };
  counter("Statements", "manxdb_sql_statements_total");
  const all = buckets(now, before, "manxdb_mysql_command_seconds", {});
  if (all.length) shown.push(card("Commands, p50 and p99", `${duration(quantile(all, 0.5))} · ${duration(quantile(all, 0.99))}`));
  gauge("MySQL connections", "manxdb_mysql_connections", number);
  counter("Commits with writes", "manxdb_sql_commits_total");
  counter("Conflicts met", "manxdb_sql_conflicts_total", "before statements are run again");
  counter("Errors answered", "manxdb_sql_errors_total");
  counter("Syncs of the log", "manxdb_storage_log_syncs_total");
  gauge("Files", "manxdb_storage_files_bytes", bytes);
  gauge("Waiting for compaction", "manxdb_storage_compaction_pending_bytes", bytes);
  counter("Stalled by storage, µs", "manxdb_storage_stall_microseconds_total");
  gauge("Redis connections", "manxdb_redis_connections", number);
  gauge("Redis keys", "manxdb_redis_keys", number);
  return shown;
}

// Kinds of statements since the last minute's beginning: how many, and how long.
function kindRows(now, before) {
  const kinds = new Set();
  for (const key of now.samples.keys()) {
    if (familyOf(key) === "manxdb_sql_statement_seconds_count") kinds.add(labelsOf(key).kind);
  }
  return [...kinds].map((kind) => {
    const counted = buckets(now, before, "manxdb_sql_statement_seconds", { kind });
    const perSecond = rate(now, before, `manxdb_sql_statement_seconds_count{kind="${kind}"}`);
    return [kind, number(perSecond), duration(quantile(counted, 0.5)), duration(quantile(counted, 0.99))];
  });
}

// Where the time of statements goes, as parts of their sum.
function partRows(now, before) {
  const parts = [...now.samples.keys()].filter((key) => familyOf(key) === "manxdb_sql_time_seconds_total");
  const spent = parts.map((key) => [labelsOf(key).part.replace("_", " "), increase(now, before, key)]);
  const total = spent.reduce((sum, [, seconds]) => sum + seconds, 0);
  return spent.map(([part, seconds]) => [part, total ? (100 * seconds) / total : 0]);
}

function table(headings, rows) {
  const head = element("tr", {}, ...headings.map((text, i) => element("th", { textContent: text, className: i ? "number" : "" })));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell, i) =>
    cell instanceof Node ? element("td", {}, cell) : element("td", { textContent: cell, className: i ? "number" : "" }))));
  return element("table", {}, head, ...body);
}

function bar(percent) {
  const filled = element("span", { className: "filled" });
  filled.style.width = `${percent.toFixed(1)}%`;
  return element("span", { className: "bar", title: `${percent.toFixed(1)} %` }, filled);
}

// Every other number, by the part of the server that says it.
function groups(now, before) {
  const byPart = new Map();
  for (const [key, value] of now.samples) {
    const family = familyOf(key);
    if (/_(bucket|sum|count)$/.test(family)) continue;
    const part = family.split("_")[1] ?? family;
    const isCounter = family.endsWith("_total");
    const shown = isCounter ? number(rate(now, before, key)) + " /s" : family.endsWith("_bytes") ? bytes(value) : number(value);
    if (!byPart.has(part)) byPart.set(part, []);
    byPart.get(part).push([key, shown, isCounter ? number(value) : ""]);
  }
  return [...byPart].sort().map(([part, rows]) => {
    const wasOpen = document.getElementById(`part-${part}`)?.open ?? false;
    return element("details", { id: `part-${part}`, open: wasOpen },
      element("summary", { textContent: part }),
      element("div", { className: "scroll" }, table(["Metric", "Now", "Since the start"], rows)));
  });
}

function show(id, ...children) {
  document.getElementById(id).replaceChildren(...children);
}

function render() {
  const now = history[history.length - 1];
  // Quantiles and shares over the last half minute, so that they stand still enough to be read.
  const earlier = history[Math.max(0, history.length - 16)];
  show("cards", ...cards(now, history[history.length - 2]));
  const kinds = kindRows(now, earlier);
  show("kinds", kinds.length ? table(["Statement", "per second", "p50", "p99"], kinds) : element("p", { textContent: "No statement yet." }));
  show("parts", table(["Part", "%", ""], partRows(now, earlier).map(([part, percent]) => [part, percent.toFixed(1), bar(percent)])));
  show("groups", ...groups(now, earlier));
}

async function poll() {
  const state = document.getElementById("live");
  try {
    const answer = await fetch("/metrics", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    history.push({ at: performance.now(), samples: parse(await answer.text()) });
    if (history.length > KEPT) history.shift();
    state.textContent = "";
    if (history.length > 1) render();
  } catch (error) {
    state.textContent = `No answer from the server: ${error.message}`;
  }
  setTimeout(poll, history.length > 1 ? PERIOD_MS : 500);
}

poll();
