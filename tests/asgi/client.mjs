// Runs checks of reactive.js against the test service; prints one line of JSON per check.
// Usage: node client.mjs <URL of the service> <path of reactive.js>
const base = process.argv[2];
const {connect, open, StreamError} = await import(`${process.argv[3]}`);
const checks = {};

const all = async (stream) => { const found = []; for await (const each of stream) found.push(each); return found; };
const failure = async (promise) => { try { await promise; return "nothing was thrown"; } catch (error) { return [error.name, error.status ?? null, error.message]; } };

checks.all = (socket) => all(socket.stream("count.100", {n: 7}));
checks.oneByOne = (socket) => all(socket.stream("count.5", {n: 1}));

checks.breaking = async (socket) => {
  const found = [];
  for await (const each of socket.stream("endless", {n: 4})) {
    found.push(each.number);
    if (found.length === 3) break;
  }
  return found;
};

checks.demand = (socket) => new Promise((resolve) => {
  const found = [];
  const subscription = socket.subscribe("count.9", {
    next: (value) => { found.push(value); },
    complete: () => { found.push("complete"); },
  });
  subscription.request(2);
  subscription.request(1);
  setTimeout(() => { subscription.cancel(); subscription.request(5); resolve(found); }, 300);
});

checks.wrongDemand = (socket) => new Promise((resolve) => {
  const subscription = socket.subscribe("count.9", {error: (error) => resolve([error.status, error.rule])});
  subscription.request(0);
});

checks.failing = (socket) => failure(all(socket.stream("fails")));
checks.unknown = (socket) => failure(all(socket.stream("nowhere")));

checks.side_by_side = async (socket) => {
  const streams = [1, 2, 3].map((n) => all(socket.stream(`count.${n * 50}`)));
  return (await Promise.all(streams)).map((each) => each.length);
};

checks.nothing_published = (socket) => failure(all(socket.stream("shout")));

checks.both_ways = async (socket) => {
  socket.publish("shout", async function* () { yield "a"; yield "b"; yield "c"; });
  return all(socket.stream("shout"));
};

checks.cancelled_source = async (socket) => {
  let cancelled = false, made = 0;
  socket.publish("collect", function* () { try { for (;;) yield ++made; } finally { cancelled = true; } });
  const found = await all(socket.stream("collect", {n: 1}));
  await new Promise((resolve) => { setTimeout(resolve, 50); });
  return [found, cancelled, made];
};

checks.failing_source = async (socket) => {
  const log = console.error;
  console.error = () => {};
  socket.publish("shout", () => { throw new Error("secret"); });
  const found = await failure(all(socket.stream("shout")));
  console.error = log;
  return found;
};

checks.link = async () => {
  const found = [];
  for await (const each of open(`${base}/live?route=count.50&n=5`)) found.push(each);
  return found.length;
};

checks.closing = async () => {
  const socket = await connect(`${base}/live`);
  const ticking = failure(all(socket.stream("ticks")));
  socket.close();
  await socket.closed;
  return [await ticking, await failure(all(socket.stream("ticks")))];
};

checks.unreachable = () => failure(connect(`${base}/nowhere`));

const socket = await connect(`${base}/live`);
for (const [name, check] of Object.entries(checks)) console.log(JSON.stringify([name, await check(socket)]));
socket.close();
