// Asks for the page again every two seconds and puts what has changed into it. The server draws everything
// but the lines of p99 over time, which begin when the page is opened.
"use strict";

const PERIOD_MS = 2000;
// A process that stands still takes connections and never answers.
const PATIENCE_MS = 3000;
const KEPT = 300; // values: ten minutes
const SVG = "http://www.w3.org/2000/svg";

const series = new Map(); // by name: values, the oldest first
let answered = new Date();

// A line from zero to the largest value; gaps where there was none.
function line(values) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 180 24");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const most = Math.max(...values.filter((value) => value !== null), 1e-9);
  const shown = Math.max(values.length, 30);
  let points = [];
  const end = () => {
    if (points.length === 1) points.push(points[0].replace(/^[^,]*/, (x) => String(Number(x) + 1)));
    if (points.length === 0) return;
    const drawn = document.createElementNS(SVG, "polyline");
    drawn.setAttribute("points", points.join(" "));
    svg.append(drawn);
    points = [];
  };
  values.forEach((value, i) => {
    if (value === null) return end();
    points.push(`${(((shown - values.length + i) * 180) / (shown - 1)).toFixed(1)},${(22 - (20 * value) / most).toFixed(1)}`);
  });
  end();
  return svg;
}

function drawTrends(page) {
  for (const cell of page.querySelectorAll(".trend")) {
    const values = series.get(cell.dataset.series) ?? [];
    values.push(cell.dataset.value === "" ? null : Number(cell.dataset.value));
    if (values.length > KEPT) values.shift();
    series.set(cell.dataset.series, values);
    cell.replaceChildren(line(values));
  }
}

// What the reader has opened stays open.
function show(text) {
  const page = document.getElementById("page");
  const next = new DOMParser().parseFromString(text, "text/html").getElementById("page");
  if (next === null) throw new Error("that is another page");
  for (const details of next.querySelectorAll("details")) details.open = document.getElementById(details.id)?.open ?? false;
  drawTrends(next);
  page.replaceWith(document.adoptNode(next));
}

async function poll() {
  const state = document.getElementById("live");
  try {
    const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    show(await answer.text());
    answered = new Date();
    state.textContent = "";
  } catch (error) {
    const why = error.name === "TimeoutError" ? "it takes the question and does not answer" : error.message;
    const seconds = Math.round((Date.now() - answered) / 1000);
    state.textContent =
      `This node has not answered for ${seconds} s (${why}). What is below is as it was at ${answered.toLocaleTimeString()}; ` +
      "the pages of other nodes show the cluster without it.";
    document.getElementById("page").classList.add("old");
  }
  setTimeout(poll, PERIOD_MS);
}

drawTrends(document);
setTimeout(poll, PERIOD_MS);
