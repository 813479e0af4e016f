// Flows in a browser, or in Node: the text protocol of reactive_aio (docs/protocol.md).
//
//   const socket = await connect("ws://localhost:8000/live");
//   for await (const price of socket.stream("prices.ACME", {n: 16})) show(price);  // break cancels
//
// No more than n elements are ever under way: as many again are asked for as the loop has taken.

const wrong = (n) => !Number.isSafeInteger(n) || n < 1;
const rule39 = (n) => `rule 3.9: non-positive subscription request: request(${n})`;

export class StreamError extends Error {
  constructor({status = 500, detail = "", rule}) {
    super(detail || `status ${status}`);
    Object.assign(this, {name: "StreamError", status, rule});
  }
}

export function connect(url, {WebSocket = globalThis.WebSocket} = {}) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, "reactive-streams.v1");
    const connection = new Connection(socket);
    socket.onopen = () => resolve(connection);
    socket.onerror = () => reject(new StreamError({status: 503, detail: `cannot reach ${url}`}));
  });
}

// The stream that a link denotes: "wss://…?route=prices.ACME&n=16".
export async function* open(link, options) {
  const url = new URL(link, globalThis.location?.href), said = url.searchParams;
  if (!said.has("n")) said.set("n", 16);
  const connection = await connect(url, options), n = Number(said.get("n"));
  try { yield* connection.stream(null, {n, linked: true}); } finally { connection.close(); }
}

export class Connection {
  #socket; #last = 0; #routes = new Map();
  #taken = new Map(); // what was subscribed to here: id → subscriber
  #given = new Map(); // what the server subscribed to: id → {demand, cancel}

  constructor(socket) {
    this.#socket = socket;
    this.closed = new Promise((done) => { socket.onclose = (event) => { this.#end(); done(event); }; });
    socket.onmessage = ({data}) => this.#take(JSON.parse(data));
  }

  close() { this.#socket.close(1000); }

  // The subscriber {next, error, complete} gets what it requests. n is asked for at once.
  subscribe(route, subscriber, {params, n = 0, linked = false} = {}) {
    if (n !== 0 && wrong(n)) throw new RangeError(rule39(n));
    if (this.#socket.readyState > 1) throw new StreamError({status: 503, detail: "the socket is closed"});
    const id = linked ? 0 : ++this.#last;
    this.#taken.set(id, subscriber);
    if (!linked) this.#say({type: "subscribe", id, route, n, params});
    return this.#subscription(id, subscriber);
  }

  // A stream for `for await`: leaving the loop, by whatever way, cancels.
  async *stream(route, {params, n = 16, linked} = {}) {
    const arrived = [];
    let ended, wake, taken = 0;
    const come = () => wake?.();
    const subscription = this.subscribe(route, {
      next: (value) => { arrived.push(value); come(); },
      error: (error) => { ended = {error}; come(); },
      complete: () => { ended = {}; come(); },
    }, {params, n, linked});
    try {
      for (;;) {
        while (arrived.length) {
          yield arrived.shift();
          if (++taken * 2 >= n) { subscription.request(taken); taken = 0; }
        }
        if (ended?.error) throw ended.error;
        if (ended) return;
        await new Promise((resolve) => { wake = resolve; });
      }
    } finally { subscription.cancel(); }
  }

  // Let the server subscribe to route: make(params) returns an iterable, asynchronous or not.
  publish(route, make) { this.#routes.set(route, make); return this; }

  #subscription(id, subscriber) {
    const live = () => this.#taken.get(id) === subscriber;
    const cancel = () => { if (live()) { this.#taken.delete(id); this.#say({type: "cancel", id}); } };
    const request = (n) => {
      if (!live()) return;
      if (!wrong(n)) return this.#say({type: "request", id, n});
      cancel();
      subscriber.error?.(new StreamError({status: 400, detail: rule39(n), rule: "3.9"}));
    };
    return {request, cancel};
  }

  #take(message) {
    const {type, id} = message, subscriber = this.#taken.get(id), given = this.#given.get(id);
    if (type === "next") return subscriber?.next?.(message.value);
    if (type === "subscribe") return this.#give(message);
    if (type === "request") return given?.demand(message.n);
    if (type === "cancel") return given?.cancel();
    this.#taken.delete(id);
    if (type === "complete") subscriber?.complete?.();
    else if (id === undefined) console.error("reactive.js:", message.detail);
    else subscriber?.error?.(new StreamError(message));
  }

  async #give({id, route, params, n = 0}) {
    let wanted = 0, over = false, wake, iterator;
    const cancel = () => { over = true; this.#given.delete(id); wake?.(); iterator?.return?.(); };
    const last = (message) => { if (!over) { this.#say({...message, id}); cancel(); } };
    const fail = (status, detail, rule) => last({type: "error", status, detail, rule});
    const demand = (more) => {
      if (wrong(more)) return fail(400, rule39(more), "3.9");
      wanted += more;
      wake?.();
    };
    const make = this.#routes.get(route);
    if (!make) return fail(404, "there is no such route");
    this.#given.set(id, {demand, cancel});
    if (n !== 0) demand(n);
    try {
      const source = await make(params);
      iterator = (source[Symbol.asyncIterator] ?? source[Symbol.iterator]).call(source);
      while (!over) {
        if (!wanted) { await new Promise((resolve) => { wake = resolve; }); continue; }
        const {value, done} = await iterator.next();
        if (done) return last({type: "complete"});
        wanted -= 1;
        if (!over) this.#say({type: "next", id, value});
      }
    } catch (error) {
      fail(500, "the stream failed");
      console.error(error);
    }
  }

  #say(message) { if (this.#socket.readyState === 1) this.#socket.send(JSON.stringify(message)); }

  #end() {
    for (const {cancel} of [...this.#given.values()]) cancel();
    const lost = new StreamError({status: 503, detail: "the socket was closed"});
    const left = [...this.#taken.values()];
    this.#taken.clear();
    for (const subscriber of left) subscriber.error?.(lost);
  }
}
