// Clients over WebSocket against a broker: node client.cjs PORT WIDE_PORT PLACE
// On WIDE_PORT frames of WebSocket may have 4 MiB; on PORT 64 KiB, and longer bodies than 100 KiB come out of files.
// Prints "ok CHECK" or "failed CHECK: why" for each check; all run side by side, each on addresses below PLACE.
'use strict';

const assert = require('node:assert/strict');
const { WebSocket } = require('ws');
Object.assign(global, { WebSocket });
const { Client } = require('@stomp/stompjs');
const webstomp = require('webstomp-client');
const { Stomp } = require('stompjs/lib/stomp.js');
Object.assign(Stomp, { setInterval: (every, call) => setInterval(call, every), clearInterval }); // as in browsers

const [port, widePort, place] = process.argv.slice(2);
const WAIT_MS = 20000;
const MEBIBYTE = 1 << 20;
// Where stompjs cuts a text in two it breaks characters like 🎈, and it cannot cut bytes at all.
const TEXT = 'Ж東-'.repeat(MEBIBYTE / 6);
const BYTES = Uint8Array.from({ length: MEBIBYTE }, (_, position) => (position * 7) % 256);

function within(what, start) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what}: nothing came`)), WAIT_MS);
    const settle = (finish) => (value) => {
      clearTimeout(timer);
      finish(value);
    };
    start(settle(resolve), settle(reject));
  });
}

// A client that subscribes as soon as it is connected, and again after each connection; it counts both.
function subscribed(destination, options = {}, where = port) {
  const sockets = [];
  const client = new Client({
    brokerURL: `ws://127.0.0.1:${where}/any/path`,
    reconnectDelay: 100,
    ...options,
    webSocketFactory() {
      const socket = (options.socket ?? ((url, versions) => new WebSocket(url, versions)))(
        this.brokerURL,
        this.stompVersions.protocolVersions(),
      );
      sockets.push(socket);
      return socket;
    },
  });
  client.webSocketFactory = client.webSocketFactory.bind(client);
  const messages = [];
  let wanted;
  const look = () => wanted && messages.length >= wanted.count && wanted.resolve(messages);
  const take = (count) => within(`${count} messages on ${destination}`, (resolve) => ((wanted = { count, resolve }), look()));
  return within('CONNECTED', (resolve, reject) => {
    client.onStompError = (frame) => reject(new Error(frame.headers.message));
    client.onConnect = (frame) => {
      client.subscribe(
        destination,
        (message) => {
          messages.push(message);
          look();
        },
        { ack: 'auto', 'consumer-window-size': '-1' },
      );
      resolve({ client, sockets, messages, take, frame });
    };
    client.activate();
  });
}

async function carries(name, content, options = {}, where = port) {
  const destination = `/queue/${place}.${name}`;
  const session = await subscribed(destination, options, where);
  session.client.publish({ destination, ...content });
  const [message] = await session.take(1);
  if (content.body !== undefined) assert.ok(message.body === content.body);
  else assert.ok(Buffer.from(message.binaryBody).equals(Buffer.from(content.binaryBody)));
  await session.client.deactivate();
}

// React Native hands over nothing of a text behind its first NUL.
function chopping(url, versions) {
  const socket = new WebSocket(url, versions);
  const chopped = {
    socket,
    get readyState() { return socket.readyState; },
    get binaryType() { return socket.binaryType; },
    set binaryType(type) { socket.binaryType = type; },
    send: (data) => socket.send(data),
    close: () => socket.close(),
    terminate: () => socket.terminate(),
  };
  socket.onopen = (event) => chopped.onopen(event);
  socket.onclose = (event) => chopped.onclose(event);
  socket.onerror = (event) => chopped.onerror?.(event);
  socket.onmessage = ({ data }) => {
    const nul = typeof data === 'string' ? data.indexOf('\0') : -1;
    chopped.onmessage({ data: nul < 0 ? data : data.slice(0, nul) });
  };
  return chopped;
}

async function many(name, options) {
  const destination = `/queue/${place}.${name}`;
  const session = await subscribed(destination, options);
  const bodies = Array.from({ length: 300 }, (_, number) => `message ${number} Ж`);
  for (const body of bodies) session.client.publish({ destination, body });
  const messages = await session.take(bodies.length);
  assert.deepEqual(messages.map((message) => message.body), bodies);
  await session.client.deactivate();
}

const checks = {
  carries_a_large_text_in_pieces: () => carries('pieces', { body: TEXT }, { splitLargeFrames: true }),
  carries_a_large_text_in_one_frame: () => carries('wide', { body: TEXT }, {}, widePort),
  carries_large_bytes_in_one_frame: () => carries('widebytes', { binaryBody: BYTES }, {}, widePort),
  sends_binary_messages_only: () => carries('forced', { body: 'Ж' }, { forceBinaryWSFrames: true }),
  repairs_chopped_texts: () => many('chopped', { appendMissingNULLonIncoming: true, socket: chopping }),
  repairs_chopped_texts_of_binary_clients: () =>
    many('choppedbinary', { appendMissingNULLonIncoming: true, forceBinaryWSFrames: true, socket: chopping }),

  async learns_that_a_frame_was_too_long() {
    const session = await subscribed(`/queue/${place}.long`, { reconnectDelay: 0 });
    const [error, close] = await within('ERROR and CLOSE', (resolve) => {
      let told;
      session.client.onStompError = (frame) => (told = frame);
      session.client.onWebSocketClose = (event) => resolve([told, event]);
      session.client.publish({ destination: `/queue/${place}.long`, body: 'x'.repeat(70000) });
    });
    assert.match(error.headers.message, /webSocketMaxFramePayloadLength/);
    assert.equal(close.code, 1009);
    assert.match(close.reason, /webSocketMaxFramePayloadLength/);
  },

  async connects_again_after_a_lost_connection() {
    const destination = `/queue/${place}.again`;
    const session = await subscribed(destination);
    session.client.publish({ destination, body: 'one' });
    await session.take(1);
    const connected = within('the second connection', (resolve) => {
      const before = session.client.onConnect;
      session.client.onConnect = (frame) => {
        before(frame);
        resolve();
      };
    });
    session.sockets[0].terminate();
    await connected;
    session.client.publish({ destination, body: 'two' });
    const messages = await session.take(2);
    assert.deepEqual(messages.map((message) => message.body), ['one', 'two']);
    assert.equal(session.sockets.length, 2);
    await session.client.deactivate();
  },

  async keeps_heart_beats() {
    const session = await subscribed(`/queue/${place}.beats`, { heartbeatIncoming: 500, heartbeatOutgoing: 500 });
    assert.equal(session.frame.headers['heart-beat'], '500,500');
    await within('four heart-beats', (resolve, reject) => {
      let count = 0;
      session.client.onHeartbeatReceived = () => (count += 1) === 4 && resolve();
      session.client.onHeartbeatLost = reject;
    });
    await session.client.deactivate();
  },

  async ends_normally() {
    const session = await subscribed(`/queue/${place}.end`);
    const close = within('CLOSE', (resolve) => (session.client.onWebSocketClose = resolve));
    await session.client.deactivate();
    assert.equal((await close).code, 1000);
  },

  // Text only: a binary message would be lost on these two.
  async serves_webstomp() {
    const destination = `/queue/${place}.webstomp`;
    const client = webstomp.over(new WebSocket(`ws://127.0.0.1:${port}/`, ['v12.stomp']), { debug: false });
    await within('CONNECTED', (resolve, reject) => client.connect({ host: '/' }, resolve, reject));
    const bodies = Array.from({ length: 100 }, (_, number) => `Ж ${number}`);
    const got = await within('messages', (resolve) => {
      const messages = [];
      client.subscribe(destination, (message) => messages.push(message.body) === bodies.length && resolve(messages));
      for (const body of bodies) client.send(destination, body);
    });
    assert.deepEqual(got, bodies);
    await within('the end', (resolve) => client.disconnect(resolve));
  },

  async serves_stomp_websocket() {
    const destination = `/queue/${place}.stompwebsocket`;
    const client = Stomp.over(new WebSocket(`ws://127.0.0.1:${port}/`, ['v11.stomp']));
    client.debug = () => {};
    await within('CONNECTED', (resolve, reject) => client.connect({}, resolve, reject));
    const large = 'Ж'.repeat(30000).padEnd(120000, 'x');
    const bodies = [...Array.from({ length: 100 }, (_, number) => `Ж ${number}`), large];
    const got = await within('messages', (resolve) => {
      const messages = [];
      client.subscribe(destination, (message) => messages.push(message.body) === bodies.length && resolve(messages));
      for (const body of bodies) client.send(destination, {}, body);
    });
    assert.deepEqual(got, bodies);
    await within('the end', (resolve) => client.disconnect(resolve));
  },
};

async function main() {
  await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      try {
        await check();
        console.log(`ok ${name}`);
      } catch (error) {
        console.log(`failed ${name}: ${String(error.stack).slice(0, 1500).replaceAll('\n', ' | ')}`);
      }
    }),
  );
  process.exit(0);
}

main();
