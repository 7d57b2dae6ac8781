// @stomp/stompjs against a broker: node client.cjs PORT VERSION PLACE; over WebSocket with OVER=websocket, else over TCP.
// Prints "ok CHECK" or "failed CHECK: why" for each check; all run side by side, each on addresses below PLACE.
'use strict';

const assert = require('node:assert/strict');
const { Client, Versions } = require('@stomp/stompjs');

const [port, version, place] = process.argv.slice(2);
const connect = process.env.OVER === 'websocket' ? overWebSocket : overTcp;
const WAIT_MS = 15000;
const EVERY_BYTE = Uint8Array.from({ length: 768 }, (_, position) => position % 256);
// The library escapes headers in 1.2 only, and takes a backslash before an n for a line feed when it reads.
const AWKWARD = version === '1.2' ? 'Ж:東京🎈\r\nline two \\ back\\' : 'Ж 東京🎈';

let numbers = 0;

function overTcp() {
  const { TCPWrapper } = require('@stomp/tcp-wrapper');
  return new TCPWrapper('127.0.0.1', Number(port));
}

function overWebSocket() {
  const { WebSocket } = require('ws');
  return new WebSocket(`ws://127.0.0.1:${port}/`, new Versions([version]).protocolVersions());
}

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

// What arrives, for whoever waits for it.
class Inbox {
  constructor() {
    this.waiting = [];
    this.takers = [];
  }

  put(item) {
    const taker = this.takers.shift();
    if (taker) taker(item);
    else this.waiting.push(item);
  }

  next(what) {
    if (this.waiting.length) return Promise.resolve(this.waiting.shift());
    return within(what, (resolve) => this.takers.push(resolve));
  }
}

class Session {
  static open(options = {}) {
    const session = new Session();
    return within('CONNECTED', (resolve, reject) => {
      session.errors = new Inbox();
      session.closed = new Inbox();
      session.client = new Client({
        webSocketFactory: () => (session.socket = connect()),
        stompVersions: new Versions([version]),
        reconnectDelay: 0,
        heartbeatIncoming: 0,
        heartbeatOutgoing: 0,
        onConnect: (frame) => {
          session.greeting = frame.headers;
          resolve(session);
        },
        onStompError: (frame) => {
          session.errors.put(frame);
          reject(new Error(frame.headers.message));
        },
        onWebSocketClose: (event) => session.closed.put(event),
        onWebSocketError: reject,
        ...options,
      });
      session.client.activate();
    });
  }

  receipt(start) {
    const id = `receipt-${(numbers += 1)}`;
    return within(id, (resolve) => {
      this.client.watchForReceipt(id, resolve);
      start(id);
    });
  }

  send(destination, body, headers = {}) {
    const content = typeof body === 'string' ? { body } : { binaryBody: body };
    return this.receipt((receipt) => this.client.publish({ destination, ...content, headers: { ...headers, receipt } }));
  }

  async subscribe(destination, ack = 'client-individual', id = '1') {
    const inbox = new Inbox();
    await this.receipt((receipt) => {
      const headers = { id, ack, receipt, 'consumer-window-size': '-1' };
      inbox.subscription = this.client.subscribe(destination, (message) => inbox.put(message), headers);
    });
    return inbox;
  }

  async nothingWaits(inbox) {
    await this.send(`/topic/${place}.nobody`, 'x');
    assert.deepEqual(inbox.waiting.map((message) => message.body), []);
  }

  close() {
    return this.client.deactivate();
  }
}

async function filled(name, bodies) {
  const session = await Session.open();
  const destination = `/queue/${place}.${name}`;
  for (const body of bodies) await session.send(destination, body);
  return [session, destination];
}

async function left(destination, bodies, redelivered) {
  const session = await Session.open();
  const inbox = await session.subscribe(destination);
  for (const body of bodies) {
    const message = await inbox.next(body);
    assert.equal(message.body, body);
    if (redelivered !== undefined) assert.equal(message.headers.redelivered, redelivered);
    message.ack();
  }
  await session.nothingWaits(inbox);
  await session.close();
}

async function take(inbox, count) {
  const messages = [];
  while (messages.length < count) messages.push(await inbox.next(`message ${messages.length}`));
  return messages;
}

const checks = {
  async connects() {
    const session = await Session.open();
    assert.equal(session.greeting.version, version);
    assert.match(session.greeting.server, /^artemis_py\//);
    await session.close();
  },

  async sends_and_receives_in_order() {
    const [producer, destination] = await filled('order', []);
    const consumer = await Session.open();
    const inbox = await consumer.subscribe(destination, 'auto');
    for (let n = 0; n < 50; n += 1) await producer.send(destination, `message ${n}`, { n });
    for (let n = 0; n < 50; n += 1) {
      const message = await inbox.next(n);
      assert.deepEqual([message.body, message.headers.n], [`message ${n}`, String(n)]);
    }
    await Promise.all([producer.close(), consumer.close()]);
  },

  async acknowledges_all_before() {
    const [session, destination] = await filled('client', ['a', 'b', 'c']);
    const messages = await take(await session.subscribe(destination, 'client'), 3);
    messages[1].ack();
    await session.close();
    await left(destination, ['c']);
  },

  async acknowledges_one() {
    const [session, destination] = await filled('individual', ['a', 'b', 'c']);
    const messages = await take(await session.subscribe(destination), 3);
    messages[1].ack();
    await session.close();
    await left(destination, ['a', 'c']);
  },

  async refuses() {
    const [session, destination] = await filled('nack', ['x']);
    const inbox = await session.subscribe(destination);
    const first = await inbox.next('x');
    first.nack();
    const again = await inbox.next('x again');
    assert.deepEqual([first.headers.redelivered, again.headers.redelivered], ['false', 'true']);
    again.ack();
    await session.close();
    await left(destination, []);
  },

  async is_redelivered_after_a_lost_connection() {
    const [session, destination] = await filled('lost', ['x']);
    await take(await session.subscribe(destination), 1);
    session.socket.terminate();
    await left(destination, ['x'], 'true');
  },

  async commits_and_aborts() {
    const [session, destination] = await filled('transaction', []);
    const inbox = await session.subscribe(destination, 'auto');
    const undone = session.client.begin();
    await session.send(destination, 'never', { transaction: undone.id });
    undone.abort();
    const done = session.client.begin();
    await session.send(destination, 'first', { transaction: done.id });
    await session.send(destination, 'second', { transaction: done.id });
    await session.nothingWaits(inbox);
    done.commit();
    assert.deepEqual((await take(inbox, 2)).map((message) => message.body), ['first', 'second']);
    await session.nothingWaits(inbox);
    await session.close();
  },

  async acknowledges_in_a_transaction() {
    const [session, destination] = await filled('transacted-ack', ['x']);
    const inbox = await session.subscribe(destination);
    const undone = session.client.begin();
    (await inbox.next('x')).ack({ transaction: undone.id });
    undone.abort();
    const again = await inbox.next('x again');
    assert.equal(again.headers.redelivered, 'true');
    const done = session.client.begin();
    again.ack({ transaction: done.id });
    done.commit();
    await session.close();
    await left(destination, []);
  },

  async keeps_heart_beats() {
    const beats = new Inbox();
    const session = await Session.open({
      heartbeatIncoming: 500,
      heartbeatOutgoing: 500,
      onHeartbeatReceived: () => beats.put('beat'),
      onHeartbeatLost: () => beats.put('lost'),
    });
    assert.equal(session.greeting['heart-beat'], '500,500');
    assert.deepEqual(await take(beats, 4), ['beat', 'beat', 'beat', 'beat']);
    await session.send(`/queue/${place}.beats`, 'still here');
    assert.deepEqual(session.closed.waiting, []);
    await session.close();
  },

  async unsubscribes() {
    const [session, destination] = await filled('unsubscribe', []);
    const inbox = await session.subscribe(destination, 'auto');
    await session.send(destination, 'one');
    await take(inbox, 1);
    await session.receipt((receipt) => inbox.subscription.unsubscribe({ receipt }));
    await session.send(destination, 'two');
    await session.nothingWaits(inbox);
    await session.close();
    await left(destination, ['two'], 'false');
  },

  async disconnects_with_a_receipt() {
    let receipts = 0;
    const session = await Session.open({ onDisconnect: () => (receipts += 1) });
    await session.close();
    await session.closed.next('the end');
    assert.equal(receipts, 1);
  },

  async carries_bytes() {
    const [session, destination] = await filled('bytes', [EVERY_BYTE, Uint8Array.of(0), 'Ж 東京 🎈']);
    const messages = await take(await session.subscribe(destination, 'auto'), 3);
    assert.deepEqual([...messages[0].binaryBody], [...EVERY_BYTE]);
    assert.deepEqual([...messages[1].binaryBody], [0]);
    assert.equal(messages[2].body, 'Ж 東京 🎈');
    await session.close();
  },

  async carries_awkward_headers() {
    const [session, destination] = await filled('headers', []);
    const inbox = await session.subscribe(destination, 'auto');
    await session.send(destination, 'x', { awkward: AWKWARD, empty: '' });
    const { headers } = await inbox.next('x');
    assert.deepEqual([headers.awkward, headers.empty], [AWKWARD, '']);
    await session.close();
  },

  async hears_of_errors() {
    const session = await Session.open();
    const destination = `/queue/${place}.errors`;
    session.client.publish({ destination, body: 'x', headers: { priority: 'high', receipt: 'wrong' } });
    const error = await session.errors.next('ERROR');
    assert.equal(error.headers['receipt-id'], 'wrong');
    assert.match(error.headers.message, /priority/);
    if (version === '1.2') await session.closed.next('the end');
    await session.close();
  },
};

async function main() {
  if (version === '1.0') {
    delete checks.refuses;
    delete checks.keeps_heart_beats;
  }
  await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      try {
        await check();
        console.log(`ok ${name}`);
      } catch (error) {
        console.log(`failed ${name}: ${String(error.stack).replaceAll('\n', ' | ')}`);
      }
    }),
  );
  process.exit(0);
}

main();
