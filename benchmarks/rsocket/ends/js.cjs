// rsocket-js, both ends: the same command line as those in Python.
"use strict";
const { RSocketConnector, RSocketServer } = require("rsocket-core");
const { TcpClientTransport } = require("rsocket-tcp-client");
const { TcpServerTransport } = require("rsocket-tcp-server");
const { createInterface } = require("node:readline");

const PAYLOAD = Buffer.from("twenty-six bytes of payload").subarray(0, 26);
const [CREDIT, REFILL, AT_ONCE] = [256, 192, 64];
const nothing = () => {};

function serveStream(payload, n, responder) {
  let left = parseInt(payload.data.toString());
  const request = (more) => {
    for (; more > 0 && left > 0; more--) responder.onNext({ data: PAYLOAD }, --left === 0);
  };
  setImmediate(request, n);
  return { request, cancel: () => (left = 0), onExtension: nothing };
}

function answer(payload, responder) {
  responder.onNext({ data: payload.data }, true);
  return { cancel: nothing, onExtension: nothing };
}

async function serve() {
  // Without noDelay each batch waits for the acknowledgement of the one before.
  const transport = new TcpServerTransport({
    listenOptions: { port: 0, host: "127.0.0.1" },
    serverOptions: { noDelay: true },
  });
  const responder = { requestStream: serveStream, requestResponse: answer };
  const acceptor = { accept: async () => responder };
  const bound = await new RSocketServer({ transport, acceptor }).bind();
  return bound.server.address().port;
}

function stream(socket, count) {
  return new Promise((resolve, reject) => {
    let [came, left] = [0, REFILL];
    const asked = socket.requestStream({ data: Buffer.from(`${count}`) }, CREDIT, {
      onError: reject,
      onExtension: nothing,
      onComplete: () => resolve(came),
      onNext: (payload, last) => {
        came++;
        if (last) resolve(came);
        else if (--left === 0) asked.request((left = REFILL));
      },
    });
  });
}

function atOnce(socket, count, most) {
  return new Promise((resolve, reject) => {
    let [asked, came] = [0, 0];
    const ask = () => {
      asked++;
      socket.requestResponse({ data: PAYLOAD }, {
        onError: reject,
        onExtension: nothing,
        onComplete: nothing,
        onNext: () => {
          if (++came === count) resolve(came);
          else if (asked < count) ask();
        },
      });
    };
    while (asked < most) ask();
  });
}

async function connect(port) {
  const transport = new TcpClientTransport({
    connectionOptions: { port, host: "127.0.0.1", noDelay: true },
  });
  const socket = await new RSocketConnector({ transport }).connect();
  return {
    stream: (count) => stream(socket, count),
    many: (count) => atOnce(socket, count, AT_ONCE),
    one: (count) => atOnce(socket, count, 1),
  };
}

function cpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

async function main([role, port]) {
  const works = role === "serve" ? {} : await connect(parseInt(port));
  console.log(role === "serve" ? await serve() : "ready");
  for await (const order of createInterface({ input: process.stdin })) {
    const [name, count] = order.split(" ");
    if (name === "cpu") console.log(cpu());
    else if (name === "peak") console.log(process.resourceUsage().maxRSS * 1024);
    else {
      const began = performance.now();
      const came = await works[name](parseInt(count));
      console.log(`${came} ${(performance.now() - began) / 1000}`);
    }
  }
  process.exit(0);
}

main(process.argv.slice(2));
