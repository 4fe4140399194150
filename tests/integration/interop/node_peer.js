// A peer on npm's ws (Debian's node-ws); see README.md.
'use strict';
const assert = require('assert');
const fs = require('fs');
const https = require('https');
const WebSocket = require('ws');

const binary = Buffer.from(Array.from({length: 70000}, (_, i) => i % 251));
const messages = ['hello', 'gr\u00fc\u00dfe \u2603 \u{1f600}', binary, ''];

function client(port, authority) {
  const socket = new WebSocket(`wss://localhost:${port}/v1`, {
    ca: fs.readFileSync(authority),
    // A machine may know no names at all.
    lookup: (name, options, done) =>
      options.all ? done(null, [{address: '127.0.0.1', family: 4}]) : done(null, '127.0.0.1', 4),
  });
  const expected = [...messages, 'fragmented'];
  socket.on('open', () => {
    for (const message of messages) socket.send(message);
    socket.send('frag', {fin: false});
    socket.send('men', {fin: false});
    socket.send('ted', {fin: true});
  });
  socket.on('message', (data, isBinary) => {
    const wanted = expected.shift();
    assert.strictEqual(isBinary, Buffer.isBuffer(wanted));
    assert.ok(isBinary ? data.equals(wanted) : data.toString() === wanted);
    if (expected.length === 0) socket.ping('beat');
  });
  socket.on('pong', (data) => {
    assert.strictEqual(data.toString(), 'beat');
    socket.close(4000, 'done');
  });
  socket.on('close', (code, reason) => {
    assert.strictEqual(expected.length, 0);
    assert.strictEqual(code, 4000, `${code} ${reason}`);
  });
}

function server(certificate, key) {
  const listening = https.createServer({cert: fs.readFileSync(certificate), key: fs.readFileSync(key)});
  const sockets = new WebSocket.Server({server: listening, maxPayload: 0});
  sockets.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => {
      if (data.length > 1000) {
        socket.send(data.subarray(0, 999), {binary: isBinary, fin: false});
        socket.ping('among fragments');
        socket.send(data.subarray(999), {binary: isBinary, fin: true});
      } else {
        socket.send(data, {binary: isBinary});
      }
    });
    socket.on('close', (code, reason) => {
      console.log(`closed ${code} ${reason}`);
      listening.close();
    });
  });
  listening.listen(0, '127.0.0.1', () => console.log(`port ${listening.address().port}`));
}

({client, server})[process.argv[2]](...process.argv.slice(3));
