// rsocket-js 0.0.27 as a peer: the routes that the network kit requires, over TCP and WebSocket, and a
// client that runs one command per line of JSON.
"use strict";
const net = require("net");
const readline = require("readline");
const core = require("rsocket-core");
const { Flowable, Single } = require("rsocket-flowable");
const TcpClient = require("rsocket-tcp-client").default;
const TcpServer = require("rsocket-tcp-server").default;
const WebSocketClient = require("rsocket-websocket-client").default;
const WebSocketServer = require("rsocket-websocket-server").default;
const ws = require("ws");

const COMPOSITE = core.MESSAGE_RSOCKET_COMPOSITE_METADATA.string;
const ROUTING = core.MESSAGE_RSOCKET_ROUTING.string;
const nothing = () => {};
const payloadOf = (data) => ({ data: Buffer.from(data), metadata: undefined });

function routeOf(payload) {
  for (const each of core.decodeCompositeMetadata(payload.metadata || Buffer.alloc(0))) {
    if (each.mimeType === ROUTING) {
      for (const tag of core.decodeRoutes(each.content)) return tag;
    }
  }
  return "";
}

function metadataFor(route, more) {
  const items = [[ROUTING, core.encodeRoute(route)]];
  for (const [type, text] of Object.entries(more || {})) items.push([type, Buffer.from(text)]);
  return core.encodeCompositeMetadata(items);
}

// -- the server -----------------------------------------------------------------------------------
function counting(make, length) {
  return new Flowable((subscriber) => {
    let sent = 0, wanted = 0, over = false, running = false;
    const run = () => {
      if (running) return;
      running = true;
      for (let turn = 0; turn < 100 && !over && sent < wanted && sent < length; turn++) {
        subscriber.onNext(make(sent++));
      }
      running = false;
      if (!over && sent >= length) { over = true; subscriber.onComplete(); }
      if (!over && sent < wanted) setImmediate(run);
    };
    subscriber.onSubscribe({
      request: (n) => { wanted += n; setImmediate(run); },
      cancel: () => { over = true; },
    });
  });
}

function echoing(incoming) {
  return new Flowable((subscriber) => {
    let upstream = null;
    incoming.subscribe({
      onSubscribe: (subscription) => {
        upstream = subscription;
        subscriber.onSubscribe({
          request: (n) => upstream.request(n),
          cancel: () => upstream.cancel(),
        });
      },
      onNext: (payload) => subscriber.onNext({ data: payload.data || Buffer.alloc(0) }),
      onComplete: () => subscriber.onComplete(),
      onError: (error) => subscriber.onError(error),
    });
  });
}

const handlers = (peer) => ({
  fireAndForget: nothing,
  metadataPush: () => Single.of(undefined),
  requestResponse(payload) {
    const route = routeOf(payload);
    if (route === "tck.echo") return Single.of({ data: payload.data || Buffer.alloc(0) });
    if (route === "tck.metadata") return Single.of({ data: payload.metadata });
    if (route === "tck.never") return new Single((subscriber) => subscriber.onSubscribe(nothing));
    if (route !== "tck.ask") return Single.error(new Error(`refused ${route}`));
    return new Single((subscriber) => {
      subscriber.onSubscribe(nothing);
      follow(peer, payload.data.toString().split(" "), {}, (done) =>
        subscriber.onComplete(payloadOf(`${done.count} ${done.bytes} ${done.end}`)));
    });
  },
  requestStream(payload) {
    const route = routeOf(payload);
    if (route.startsWith("tck.stream.")) {
      return counting((each) => payloadOf(`${each}`), Number(route.split(".")[2]));
    }
    if (route === "tck.endless") {
      const full = { data: Buffer.alloc(1000, "x") };
      return counting(() => full, Infinity);
    }
    return new Flowable((subscriber) => {
      let begun = false;
      subscriber.onSubscribe({
        request: () => {
          if (begun) return;
          begun = true;
          if (route === "tck.fail") subscriber.onNext(payloadOf("1"));
          subscriber.onError(new Error(`refused ${route}`));
        },
        cancel: nothing,
      });
    });
  },
  requestChannel: echoing,
});

function getRequestHandler(peer, setup) {
  if (setup.metadata && setup.metadata.includes("wrong")) throw new Error("go away");
  return handlers(peer);
}

function listen(make) {
  return new Promise((resolve) => {
    const transport = make((server) =>
      server.on("listening", () => resolve(server.address().port)));
    new core.RSocketServer({ transport, getRequestHandler }).start();
  });
}

const listenTcp = () => listen((listening) => new TcpServer({
  port: Number(process.env.TCP_PORT || 0),
  host: "127.0.0.1",
  serverFactory: (connected) => {
    const server = net.createServer({ noDelay: true }, connected);
    listening(server);
    return server;
  },
}, core.BufferEncoders));

const listenWebSocket = () => listen((listening) => new WebSocketServer(
  { port: Number(process.env.WS_PORT || 0), host: "127.0.0.1" },
  core.BufferEncoders,
  (options) => {
    const server = new ws.Server(options);
    listening(server);
    return server;
  },
));

// -- the client -----------------------------------------------------------------------------------
function transportTo(uri) {
  const url = new URL(uri);
  if (url.protocol === "ws:") {
    const wsCreator = (to) => new ws.WebSocket(to);
    return new WebSocketClient({ url: uri, wsCreator, debug: true }, core.BufferEncoders);
  }
  return new TcpClient({ host: url.hostname, port: Number(url.port) }, core.BufferEncoders);
}

function connect(command) {
  const items = command.user
    ? [[core.MESSAGE_RSOCKET_AUTHENTICATION.string, core.encodeSimpleAuthMetadata(...command.user)]]
    : [];
  const client = new core.RSocketClient({
    transport: transportTo(command.uri),
    setup: {
      keepAlive: 20000,
      lifetime: 90000,
      dataMimeType: "application/octet-stream",
      metadataMimeType: COMPOSITE,
      payload: { data: Buffer.alloc(0), metadata: core.encodeCompositeMetadata(items) },
    },
    responder: {
      requestResponse: (payload) => Single.of(payloadOf(`you said ${payload.data}`)),
    },
  });
  return new Promise((resolve, reject) =>
    client.connect().subscribe({ onComplete: resolve, onError: reject, onSubscribe: nothing }));
}

// The protocol limits a request to 31 bits.
const amount = (word) => Math.min(Number(word), 0x7fffffff);

// Run the script, see docs/protocol.md; then report the result.
function follow(peer, words, command, done) {
  const model = words.shift();
  const report = { count: 0, bytes: 0, elements: [], end: "" };
  let due = 0, handle = null, over = false;
  const end = (how) => { if (!over) { over = true; report.end = how; setImmediate(done, report); } };
  const next = (payload) => {
    report.count += 1;
    report.bytes += payload.data ? payload.data.length : 0;
    if (report.elements.length < 50) report.elements.push(String(payload.data).slice(0, 100));
  };
  const step = () => {
    while (words.length && report.count === due) {
      const word = words.shift();
      if (word === "cancel") {
        while (words.length) words.shift();
        handle.cancel();
        end("cancel");
      } else {
        due += amount(word);
        handle.request(amount(word));
      }
    }
  };
  const failed = (error) => {
    report.message = error.message;
    end(`error ${error.source ? error.source.code : 0}`);
  };
  const data = command.size ? Buffer.alloc(command.size, "big") : Buffer.from(command.data || "");
  const payload = { data, metadata: metadataFor(command.route || "tck.answer", command.metadata) };
  const many = {
    onSubscribe: (subscription) => { handle = subscription; step(); },
    onNext: (each) => { next(each); setImmediate(step); },
    onComplete: () => end("complete"),
    onError: failed,
  };
  if (model === "response") {
    peer.requestResponse(payload).subscribe({
      onSubscribe: nothing,
      onComplete: (each) => { next(each); end("complete"); },
      onError: failed,
    });
  } else if (model === "fnf") {
    peer.fireAndForget(payload);
    setTimeout(end, 50, "complete"); // its arrival is not reported
  } else if (model === "channel") {
    const rest = (command.rest || []).map((each) => payloadOf(each));
    peer.requestChannel(Flowable.just(payload, ...rest)).subscribe(many);
  } else {
    const stream = peer.requestStream(payload);
    if (model === "twice") stream.subscribe({ ...many, onSubscribe: (each) => each.request(1) });
    stream.subscribe(many);
  }
}

async function act(command) {
  let peer;
  try {
    peer = await connect(command);
  } catch (error) {
    return { end: "no connection", message: error.message };
  }
  const closed = new Promise((resolve) => peer.connectionStatus().subscribe({
    onSubscribe: (subscription) => subscription.request(0x7fffffff),
    onNext: (status) => {
      if (status.kind !== "CONNECTED") {
        setTimeout(resolve, 50, { end: "closed", message: String(status.error || status.kind) });
      }
    },
  }));
  const report = await Promise.race([
    new Promise((done) => follow(peer, command.script.split(" "), command, done)),
    closed,
  ]);
  peer.close();
  return report;
}

// The transport does not handle the error of a connection that is reset.
process.on("uncaughtException", (error) => console.error(error.message));

async function main() {
  const [tcp, ws] = await Promise.all([listenTcp(), listenWebSocket()]);
  console.log(JSON.stringify({ tcp, ws }));
  readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const command = JSON.parse(line);
    act(command).then((report) => console.log(JSON.stringify({ id: command.id, ...report })));
  }).on("close", () => process.exit(0));
}

main();
