// Flows in a browser, or in Node: the text protocol of reactive_aio (docs/protocol.md).
//
//   const socket = await connect("ws://localhost:8000/live");
//   for await (const price of socket.stream("prices.ACME", {n: 16})) show(price);  // break cancels
//
// At most n elements are under way: the loop requests as many as it has processed.

const isInvalid = (n) => !Number.isSafeInteger(n) || n < 1;
const invalidDemand = (n) => `rule 3.9: non-positive subscription request: request(${n})`;

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

// The stream that a URL describes: "wss://…?route=prices.ACME&n=16".
export async function* open(address, options) {
  const url = new URL(address, globalThis.location?.href), query = url.searchParams;
  if (!query.has("n")) query.set("n", 16);
  const connection = await connect(url, options), n = Number(query.get("n"));
  try { yield* connection.stream(null, {n, isOpened: true}); } finally { connection.close(); }
}

export class Connection {
  #socket; #lastId = 0; #routes = new Map();
  #subscribers = new Map(); // of streams of the server: id → subscriber
  #publications = new Map(); // streams that the server subscribed to: id → {demand, cancel}

  constructor(socket) {
    this.#socket = socket;
    this.closed = new Promise((done) => { socket.onclose = (event) => { this.#disconnect(); done(event); }; });
    socket.onmessage = ({data}) => this.#receive(JSON.parse(data));
  }

  close() { this.#socket.close(1000); }

  // The subscriber {next, error, complete} gets what it requests; n is requested at once.
  subscribe(route, subscriber, {params, n = 0, isOpened = false} = {}) {
    if (n !== 0 && isInvalid(n)) throw new RangeError(invalidDemand(n));
    if (this.#socket.readyState > 1) throw new StreamError({status: 503, detail: "the socket is closed"});
    const id = isOpened ? 0 : ++this.#lastId;
    this.#subscribers.set(id, subscriber);
    if (!isOpened) this.#send({type: "subscribe", id, route, n, params});
    return this.#subscription(id, subscriber);
  }

  // A stream for `for await`; ending the loop in any way cancels it.
  async *stream(route, {params, n = 16, isOpened} = {}) {
    const buffer = [];
    let end, wake, processed = 0;
    const subscription = this.subscribe(route, {
      next: (value) => { buffer.push(value); wake?.(); },
      error: (error) => { end = {error}; wake?.(); },
      complete: () => { end = {}; wake?.(); },
    }, {params, n, isOpened});
    try {
      for (;;) {
        while (buffer.length) {
          yield buffer.shift();
          if (++processed * 2 >= n) { subscription.request(processed); processed = 0; }
        }
        if (end?.error) throw end.error;
        if (end) return;
        await new Promise((resolve) => { wake = resolve; });
      }
    } finally { subscription.cancel(); }
  }

  // Let the server subscribe to route: make(params) returns an iterable or an async iterable.
  publish(route, make) { this.#routes.set(route, make); return this; }

  #subscription(id, subscriber) {
    const isActive = () => this.#subscribers.get(id) === subscriber;
    const cancel = () => { if (isActive()) { this.#subscribers.delete(id); this.#send({type: "cancel", id}); } };
    const request = (n) => {
      if (!isActive()) return;
      if (!isInvalid(n)) return this.#send({type: "request", id, n});
      cancel();
      subscriber.error?.(new StreamError({status: 400, detail: invalidDemand(n), rule: "3.9"}));
    };
    return {request, cancel};
  }

  #receive(message) {
    const {type, id} = message, subscriber = this.#subscribers.get(id), publication = this.#publications.get(id);
    if (type === "next") return subscriber?.next?.(message.value);
    if (type === "subscribe") return this.#serve(message);
    if (type === "request") return publication?.demand(message.n);
    if (type === "cancel") return publication?.cancel();
    this.#subscribers.delete(id);
    if (type === "complete") subscriber?.complete?.();
    else if (id === undefined) console.error("reactive.js:", message.detail);
    else subscriber?.error?.(new StreamError(message));
  }

  async #serve({id, route, params, n = 0}) {
    let demanded = 0, isDone = false, wake, iterator;
    const cancel = () => { isDone = true; this.#publications.delete(id); wake?.(); iterator?.return?.(); };
    const end = (message) => { if (!isDone) { this.#send({...message, id}); cancel(); } };
    const fail = (status, detail, rule) => end({type: "error", status, detail, rule});
    const demand = (more) => {
      if (isInvalid(more)) return fail(400, invalidDemand(more), "3.9");
      demanded += more;
      wake?.();
    };
    const make = this.#routes.get(route);
    if (!make) return fail(404, "there is no such route");
    this.#publications.set(id, {demand, cancel});
    if (n !== 0) demand(n);
    try {
      const source = await make(params);
      iterator = (source[Symbol.asyncIterator] ?? source[Symbol.iterator]).call(source);
      while (!isDone) {
        if (!demanded) { await new Promise((resolve) => { wake = resolve; }); continue; }
        const {value, done} = await iterator.next();
        if (done) return end({type: "complete"});
        demanded -= 1;
        if (!isDone) this.#send({type: "next", id, value});
      }
    } catch (error) {
      fail(500, "the stream failed");
      console.error(error);
    }
  }

  #send(message) { if (this.#socket.readyState === 1) this.#socket.send(JSON.stringify(message)); }

  #disconnect() {
    for (const {cancel} of [...this.#publications.values()]) cancel();
    const error = new StreamError({status: 503, detail: "the socket was closed"});
    const subscribers = [...this.#subscribers.values()];
    this.#subscribers.clear();
    for (const subscriber of subscribers) subscriber.error?.(error);
  }
}
