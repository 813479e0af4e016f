// The RSocket client of the page: rsocket-js, with subscriptions that request elements at a rate.

import { Buffer } from "buffer";
import { RSocketConnector } from "rsocket-core";
import { WebsocketClientTransport } from "rsocket-websocket-client";
import { encodeCompositeMetadata, encodeRoute, WellKnownMimeType } from "rsocket-composite-metadata";

const BEAT = 50; // milliseconds between two requests

function payload(route) {
  const items = new Map([[WellKnownMimeType.MESSAGE_RSOCKET_ROUTING, encodeRoute(route)]]);
  return { data: Buffer.from("null"), metadata: encodeCompositeMetadata(items) };
}

export function connect(url) {
  return new RSocketConnector({
    setup: {
      dataMimeType: "application/json",
      metadataMimeType: "message/x.rsocket.composite-metadata.v0",
      keepAlive: 10_000,
      lifetime: 60_000,
    },
    transport: new WebsocketClientTransport({ url, wsCreator: (at) => new WebSocket(at) }),
  }).connect();
}

/** Subscribe to `route`, request `rate` elements per second, and pass each to `onNext`. */
export function subscribe(rsocket, route, rate, { onNext, onEnd }) {
  const stream = { rate, requested: 1, received: 0, open: true };
  const subscription = rsocket.requestStream(payload(route), 1, {
    onNext({ data }, complete) {
      stream.received += 1;
      onNext(JSON.parse(data.toString()));
      if (complete) end("complete");
    },
    onComplete: () => end("complete"),
    onError: (error) => end(error.message),
    onExtension() {},
  });

  let due = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    // A tab that was suspended does not catch up on the requests that it missed.
    due = Math.min(due + (stream.rate * (now - last)) / 1000, Math.max(stream.rate, 1));
    last = now;
    const n = Math.floor(due);
    // More requests would be useless while earlier ones are outstanding.
    if (n > 0 && stream.requested - stream.received <= stream.rate) {
      due -= n;
      stream.requested += n;
      subscription.request(n);
    }
  }, BEAT);

  function end(reason) {
    if (!stream.open) return;
    stream.open = false;
    clearInterval(timer);
    onEnd(reason);
  }

  stream.cancel = () => {
    if (stream.open) subscription.cancel();
    end("cancelled");
  };
  return stream;
}

/** Follow `route` one element at a time: each element requests the next one. */
export function follow(rsocket, route, onNext) {
  const subscription = rsocket.requestStream(payload(route), 1, {
    onNext({ data }) {
      onNext(JSON.parse(data.toString()));
      subscription.request(1);
    },
    onComplete() {},
    onError() {},
    onExtension() {},
  });
}
