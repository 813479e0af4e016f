// rsocket-js 1.0.0-alpha.3 as a peer: the routes that the network kit requires, over TCP and WebSocket,
// and a client that runs one command per line of JSON.
"use strict";
const readline = require("readline");
const { WellKnownMimeType, decodeCompositeMetadata, decodeRoutes, encodeCompositeMetadata,
  encodeRoute, encodeSimpleAuthMetadata } = require("rsocket-composite-metadata");
const { RSocketConnector, RSocketServer } = require("rsocket-core");
const { TcpClientTransport } = require("rsocket-tcp-client");
const { TcpServerTransport } = require("rsocket-tcp-server");
const { WebsocketClientTransport } = require("rsocket-websocket-client");
const { WebsocketServerTransport } = require("rsocket-websocket-server");
const { Server: WebSocketServer, WebSocket } = require("ws");

const COMPOSITE = WellKnownMimeType.MESSAGE_RSOCKET_COMPOSITE_METADATA.toString();
const ROUTING = WellKnownMimeType.MESSAGE_RSOCKET_ROUTING.toString();
const FRAGMENT = 65536;
const nothing = () => {};

function routeOf(payload) {
  for (const each of decodeCompositeMetadata(payload.metadata || Buffer.alloc(0))) {
    if (each.mimeType === ROUTING) {
      for (const tag of decodeRoutes(each.content)) return tag;
    }
  }
  return "";
}

function metadataFor(route, more) {
  const items = new Map([[WellKnownMimeType.MESSAGE_RSOCKET_ROUTING, encodeRoute(route)]]);
  for (const [type, text] of Object.entries(more || {})) items.set(type, Buffer.from(text));
  return encodeCompositeMetadata(items);
}

// -- the server -----------------------------------------------------------------------------------
function counting(payload, n, subscriber, make, length) {
  let sent = 0, wanted = 0, over = false, running = false;
  const run = () => {
    if (running) return;
    running = true;
    for (let turn = 0; turn < 100 && !over && sent < wanted && sent < length; turn++) subscriber.onNext(make(sent++), false);
    if (!over && sent >= length) { over = true; subscriber.onComplete(); }
    running = false;
    if (!over && sent < wanted) setImmediate(run);
  };
  const handle = {
    request: (more) => { wanted += more; run(); },
    cancel: () => { over = true; },
    onExtension: nothing,
  };
  setImmediate(() => handle.request(n));
  return handle;
}

const handlers = (peer) => ({
  fireAndForget: () => ({ cancel: nothing }),
  metadataPush: nothing,
  requestResponse(payload, subscriber) {
    const route = routeOf(payload);
    if (route === "tck.echo") subscriber.onNext({ data: payload.data || Buffer.alloc(0) }, true);
    else if (route === "tck.metadata") subscriber.onNext({ data: payload.metadata }, true);
    else if (route === "tck.ask") {
      follow(peer, payload.data.toString().split(" "), {}, (done) =>
        subscriber.onNext({ data: Buffer.from(`${done.count} ${done.bytes} ${done.end}`) }, true));
    } else if (route !== "tck.never") subscriber.onError(new Error(`refused ${route}`));
    return { cancel: nothing, onExtension: nothing };
  },
  requestStream(payload, n, subscriber) {
    const route = routeOf(payload);
    const text = (each) => ({ data: Buffer.from(`${each}`) });
    if (route.startsWith("tck.stream.")) {
      return counting(payload, n, subscriber, text, Number(route.split(".")[2]));
    }
    if (route === "tck.endless") {
      const full = { data: Buffer.alloc(1000, "x") };
      return counting(payload, n, subscriber, () => full, Infinity);
    }
    if (route === "tck.fail") subscriber.onNext(text("1"), false);
    subscriber.onError(new Error(`refused ${route}`));
    return { request: nothing, cancel: nothing, onExtension: nothing };
  },
  requestChannel(payload, n, isComplete, subscriber) {
    let wanted = n, kept = [payload], ended = isComplete, over = false;
    const run = () => {
      while (!over && kept.length && wanted) {
        wanted -= 1;
        subscriber.onNext({ data: kept.shift().data }, false);
      }
      if (!over && ended && !kept.length) { over = true; subscriber.onComplete(); }
    };
    setImmediate(() => { if (!ended) subscriber.request(Math.max(1, n - 1)); run(); });
    return {
      onNext: (each, last) => { kept.push(each); ended = ended || last; run(); },
      onComplete: () => { ended = true; run(); },
      onError: () => { over = true; },
      request: (more) => { wanted += more; if (!ended) subscriber.request(more); run(); },
      cancel: () => { over = true; },
      onExtension: nothing,
    };
  },
});

const acceptor = {
  accept: async (setup, peer) => {
    if (setup.metadata && setup.metadata.includes("wrong")) throw new Error("go away");
    return handlers(peer);
  },
};

function listenTcp() {
  return new Promise((resolve) => {
    const net = require("net");
    const transport = new TcpServerTransport({
      listenOptions: { port: Number(process.env.TCP_PORT || 0), host: "127.0.0.1" },
      serverOptions: { noDelay: true },
      socketCreator: (options) => {
        const server = new net.Server(options);
        server.on("listening", () => resolve(server.address().port));
        return server;
      },
    });
    new RSocketServer({ transport, acceptor, fragmentation: { maxOutboundFragmentSize: FRAGMENT },
      resume: process.argv.includes("resume") ? { sessionTimeout: 10000 } : undefined }).bind();
  });
}

function listenWebSocket() {
  return new Promise((resolve) => {
    const transport = new WebsocketServerTransport({
      wsCreator: () => {
        const server = new WebSocketServer({ port: Number(process.env.WS_PORT || 0), host: "127.0.0.1" });
        server.on("listening", () => resolve(server.address().port));
        return server;
      },
    });
    new RSocketServer({ transport, acceptor,
      fragmentation: { maxOutboundFragmentSize: FRAGMENT } }).bind();
  });
}

// -- the client -----------------------------------------------------------------------------------
const sockets = [];

function transportTo(uri) {
  const url = new URL(uri);
  if (url.protocol === "ws:") {
    return new WebsocketClientTransport({ url: uri, wsCreator: (to) => new WebSocket(to) });
  }
  const net = require("net");
  const connectionOptions = { host: url.hostname, port: Number(url.port) };
  const socketCreator = (options) => {
    const socket = net.connect(options);
    sockets.push(socket);
    return socket;
  };
  return new TcpClientTransport({ connectionOptions, socketCreator });
}

function connect(command) {
  const items = new Map();
  if (command.user) {
    items.set(WellKnownMimeType.MESSAGE_RSOCKET_AUTHENTICATION,
      encodeSimpleAuthMetadata(...command.user));
  }
  return new RSocketConnector({
    transport: transportTo(command.uri),
    setup: {
      keepAlive: 20000,
      lifetime: 90000,
      dataMimeType: "application/octet-stream",
      metadataMimeType: COMPOSITE,
      payload: { data: Buffer.alloc(0), metadata: encodeCompositeMetadata(items) },
    },
    fragmentation: command.fragment ? { maxOutboundFragmentSize: command.fragment } : undefined,
    resume: command.resume ? {
      tokenGenerator: () => require("crypto").randomBytes(16),
      reconnectFunction: (attempt) => new Promise((go) => setTimeout(go, 20 * attempt + 20)),
    } : undefined,
    responder: {
      requestResponse(payload, subscriber) {
        subscriber.onNext({ data: Buffer.from(`you said ${payload.data}`) }, true);
        return { cancel: nothing, onExtension: nothing };
      },
    },
  }).connect();
}

// The protocol limits a request to 31 bits.
const amount = (word) => Math.min(Number(word), 0x7fffffff);

// Run the script, see docs/protocol.md; then report the result.
function follow(peer, words, command, done) {
  let model = words.shift();
  if (model === "twice") {
    model = "stream";
    follow(peer, ["stream", ...words], command, nothing);
  }
  const report = { count: 0, bytes: 0, elements: [], end: "" };
  let due = 0, handle = null, over = false;
  const end = (how) => { if (!over) { over = true; report.end = how; setImmediate(done, report); } };
  const step = () => {
    while (words.length && report.count === due) {
      const word = words.shift();
      if (word === "drop") sockets.pop().destroy();
      else if (word === "cancel") {
        while (words.length) words.shift();
        handle.cancel();
        handle.cancel();
        end("cancel");
      } else {
        due += amount(word);
        handle.request(amount(word));
      }
    }
  };
  const subscriber = {
    onNext(payload, isComplete) {
      report.count += 1;
      report.bytes += payload.data ? payload.data.length : 0;
      if (report.elements.length < 50) report.elements.push(String(payload.data).slice(0, 100));
      if (isComplete) end("complete"); else step();
    },
    onComplete: () => end("complete"),
    onError: (error) => { report.message = error.message; end(`error ${error.code || 0}`); },
    onExtension: nothing,
    request: nothing,
    cancel: nothing,
  };
  const data = command.size ? Buffer.alloc(command.size, "big") : Buffer.from(command.data || "");
  const payload = { data, metadata: metadataFor(command.route || "tck.answer", command.metadata) };
  if (model === "response") peer.requestResponse(payload, subscriber);
  else if (model === "fnf") {
    peer.fireAndForget(payload, { onComplete: nothing, onError: subscriber.onError });
    setTimeout(end, 50, "complete"); // its arrival is not reported
  } else if (model === "stream") {
    due = amount(words.shift());
    handle = peer.requestStream(payload, due, subscriber);
  } else if (model === "channel") {
    due = Number(words.shift());
    const rest = (command.rest || []).map((each) => ({ data: Buffer.from(each) }));
    let allowed = 0;
    const send = () => {
      while (allowed > 0 && rest.length) {
        allowed -= 1;
        const each = rest.shift();
        handle.onNext(each, !rest.length);
      }
    };
    subscriber.request = (n) => { allowed += n; report.asked = (report.asked || 0) + n; send(); };
    handle = peer.requestChannel(payload, due, !rest.length, subscriber);
  }
}

async function act(command) {
  let peer;
  try {
    peer = await connect(command);
  } catch (error) {
    return { end: "no connection", message: error.message };
  }
  // A resumed connection is sometimes reported as closed.
  const closed = new Promise((resolve) => command.resume ||
    peer.onClose((error) => resolve({ end: "closed", message: error ? error.message : "" })));
  const report = await Promise.race([
    new Promise((done) => follow(peer, command.script.split(" "), command, done)),
    closed.then((report) => new Promise((go) => setTimeout(go, 50, report))),
  ]);
  if (!command.resume) peer.close();
  return report;
}

async function main() {
  const [tcp, ws] = await Promise.all([listenTcp(), listenWebSocket()]);
  console.log(JSON.stringify({ tcp, ws }));
  readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const command = JSON.parse(line);
    act(command).then((report) => console.log(JSON.stringify({ id: command.id, ...report })));
  }).on("close", () => process.exit(0));
}

// rsocket-js does not handle a socket that is reset after its last frame.
process.on("uncaughtException", (error) => {
  console.error(error.stack);
  if (error.code !== "ECONNRESET") process.exit(1);
});
main();
