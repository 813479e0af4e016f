// The user interface of the page.

import { connect, follow, subscribe } from "./prices.js";

const SYMBOLS = ["ACME", "GLOBEX", "INITECH", "HOOLI"];
const CHART_LENGTH = 240; // prices in the chart
const LIST_LENGTH = 5;

const $ = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const money = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

let rsocket = null;
let stream = null;
let symbol = SYMBOLS[0];
let made = 0;
let madeBefore = 0; // by earlier streams
let prices = [];
let arrivals = []; // times of the last second
let latest = [];

// -- actions --------------------------------------------------------------------------------------
function start() {
  prices = [];
  latest = [];
  arrivals = [];
  madeBefore = made;
  stream = subscribe(rsocket, `prices.${symbol}`, rate(), { onNext: receive, onEnd });
  setState("subscribed");
}

function receive(element) {
  prices.push(element.price);
  if (prices.length > CHART_LENGTH) prices.shift();
  latest.unshift(element);
  latest.length = Math.min(latest.length, LIST_LENGTH);
  arrivals.push(performance.now());
}

function onEnd(reason) {
  setState(reason === "cancelled" ? "cancelled" : `ended: ${reason}`);
}

function rate() {
  return Number($("rate").value);
}

function setState(text) {
  $("state").textContent = text;
  const open = stream?.open ?? false;
  $("toggle").textContent = open ? "Cancel" : "Subscribe";
  $("toggle").dataset.open = open;
}

function showRate() {
  const n = rate();
  $("rate-shown").textContent = `${n} / s`;
  $("hint").textContent = n
    ? "The page requests this many prices per second, and Python makes no more."
    : "The page requests nothing, so Python makes nothing: the subscription waits.";
  $("rate").style.setProperty("--share", `${n / 2}%`);
  if (stream) stream.rate = n;
}

// -- display --------------------------------------------------------------------------------------
function draw() {
  const now = performance.now();
  while (arrivals.length && arrivals[0] < now - 1000) arrivals.shift();
  const figures = {
    requested: stream?.requested ?? 0,
    // The totals arrive ten times a second; prices received since then were made as well.
    made: stream ? Math.max(made - madeBefore, stream.received) : 0,
    received: stream?.received ?? 0,
  };
  const most = Math.max(1, ...Object.values(figures));
  for (const [name, value] of Object.entries(figures)) {
    $(name).textContent = number.format(value);
    $(`${name}-bar`).style.width = `${(100 * value) / most}%`;
  }
  $("speed").textContent = number.format(arrivals.length);
  $("speed-bar").style.width = `${Math.min(100, arrivals.length / 2)}%`;
  quote();
  list();
  chart();
  requestAnimationFrame(draw);
}

function quote() {
  $("symbol").textContent = symbol;
  const last = prices.at(-1);
  $("price").textContent = last === undefined ? "–" : money.format(last);
  const change = prices.length > 1 ? (100 * (last - prices[0])) / prices[0] : 0;
  $("change").textContent = prices.length > 1 ? `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(2)} %` : "";
  $("change").className = change < 0 ? "down" : "up";
}

function list() {
  const rows = latest.map(({ number: n, price }) => {
    const row = document.createElement("li");
    const count = document.createElement("span");
    count.textContent = `#${number.format(n)}`;
    row.append(count, money.format(price));
    return row;
  });
  $("elements").replaceChildren(...rows);
}

function chart() {
  const canvas = $("chart");
  const scale = devicePixelRatio;
  const width = Math.round(canvas.clientWidth * scale);
  const height = Math.round(canvas.clientHeight * scale);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const paint = canvas.getContext("2d");
  paint.clearRect(0, 0, width, height);
  const style = getComputedStyle(document.documentElement);
  const ink = getComputedStyle(canvas);
  grid(paint, width, height, ink.color);
  if (prices.length < 2) return;
  const low = Math.min(...prices);
  const high = Math.max(...prices);
  const y = (price) => height * (0.92 - (0.84 * (price - low)) / (high - low || 1));
  const x = (i) => ((width - 6 * scale) * i) / (CHART_LENGTH - 1);
  const accent = style.getPropertyValue("--accent");
  paint.beginPath();
  prices.forEach((price, i) => paint.lineTo(x(i), y(price)));
  paint.lineWidth = 2 * scale;
  paint.lineJoin = "round";
  paint.strokeStyle = accent;
  paint.stroke();
  paint.lineTo(x(prices.length - 1), height);
  paint.lineTo(0, height);
  const under = paint.createLinearGradient(0, 0, 0, height);
  under.addColorStop(0, `${accent}55`);
  under.addColorStop(1, `${accent}00`);
  paint.fillStyle = under;
  paint.fill();
  paint.beginPath();
  paint.arc(x(prices.length - 1), y(prices.at(-1)), 4 * scale, 0, 2 * Math.PI);
  paint.fillStyle = accent;
  paint.fill();
}

function grid(paint, width, height, color) {
  paint.globalAlpha = 0.1;
  paint.fillStyle = color;
  for (let i = 1; i < 5; i += 1) paint.fillRect(0, Math.round((height * i) / 5), width, 1);
  paint.globalAlpha = 1;
}

// -- start ----------------------------------------------------------------------------------------
function choices() {
  for (const each of SYMBOLS) {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), {
      type: "radio",
      name: "symbol",
      value: each,
      checked: each === symbol,
    });
    input.addEventListener("change", () => {
      symbol = each;
      if (!stream?.open) return;
      stream.cancel();
      start();
    });
    const text = document.createElement("span");
    text.textContent = each;
    label.append(input, text);
    $("symbols").append(label);
  }
}

function connection(state, text) {
  $("connection").dataset.state = state;
  $("connection").textContent = text;
  $("toggle").disabled = state !== "open";
}

async function main() {
  choices();
  showRate();
  $("rate").addEventListener("input", showRate);
  $("toggle").addEventListener("click", () => (stream?.open ? stream.cancel() : start()));
  requestAnimationFrame(draw);
  const query = new URLSearchParams(location.search);
  const here = `${location.protocol.replace("http", "ws")}//${location.host}/rsocket`;
  const url = query.get("server") ?? here;
  try {
    rsocket = await connect(url);
  } catch (error) {
    connection("lost", "no connection");
    return;
  }
  connection("open", "connected");
  rsocket.onClose(() => connection("lost", "connection lost"));
  follow(rsocket, "totals", (totals) => (made = totals.made));
}

main();
