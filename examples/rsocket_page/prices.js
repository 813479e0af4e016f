// The page's end of the wire: rsocket-js, with a subscription that is asked for so many a second.

import { Buffer } from "buffer";
import { RSocketConnector } from "rsocket-core";
import { WebsocketClientTransport } from "rsocket-websocket-client";
import { encodeCompositeMetadata, encodeRoute, WellKnownMimeType } from "rsocket-composite-metadata";

const BEAT = 50; // milliseconds between two looks at what is owed

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

/** Subscribe to `route`, ask for `rate` elements a second, and hand each to `onNext`. */
export function subscribe(rsocket, route, rate, { onNext, onEnd }) {
  const here = { rate, asked: 1, arrived: 0, open: true };
  const subscription = rsocket.requestStream(payload(route), 1, {
    onNext({ data }, complete) {
      here.arrived += 1;
      onNext(JSON.parse(data.toString()));
      if (complete) end("complete");
    },
    onComplete: () => end("complete"),
    onError: (error) => end(error.message),
    onExtension() {},
  });

  let owed = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    // A tab that slept does not ask for all that it missed.
    owed = Math.min(owed + (here.rate * (now - last)) / 1000, Math.max(here.rate, 1));
    last = now;
    const n = Math.floor(owed);
    // Who has not yet got what was asked for has nothing to gain from asking for more.
    if (n > 0 && here.asked - here.arrived <= here.rate) {
      owed -= n;
      here.asked += n;
      subscription.request(n);
    }
  }, BEAT);

  function end(why) {
    if (!here.open) return;
    here.open = false;
    clearInterval(timer);
    onEnd(why);
  }

  here.cancel = () => {
    if (here.open) subscription.cancel();
    end("cancelled");
  };
  return here;
}

/** Follow `route` one element after the other: the next is asked for when one has come. */
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
