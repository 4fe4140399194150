// Apps with HTTP streams: the library listens by itself, and the host is told where.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const http = require('node:http');
const { test } = require('node:test');
const { ScriptedHost, json, makeApp } = require('./scripted_host');

const source = `const { app } = require('@azure/functions');
app.setup({ enableHttpStream: true, capabilities: { MyCapability: 'on' } });
app.http('echo', { methods: ['GET', 'POST'], route: 'echo/{id}', handler: async (request) => {
  if (request.query.get('fail')) throw new Error('asked to');
  const body = request.method === 'POST' ? await request.text() : '';
  return { status: 201, headers: { 'x-id': request.params.id, 'x-seen': request.headers.get('x-sent') ?? '' },
    cookies: [{ name: 'c', value: 'a b', path: '/', maxAge: 5, sameSite: 'Strict', httpOnly: true }],
    body: new ReadableStream({ start(c) { c.enqueue(Buffer.from('got ')); c.enqueue(Buffer.from(body)); c.close(); } }) }; } });
app.storageQueue('q', { queueName: 'q', connection: 'C', handler: (n) => n });`;

async function start(t) {
  const host = await ScriptedHost.start(t);
  const { capabilities } = await host.init(makeApp(t, { 'index.js': source }));
  const { functionMetadataResults: functions } = await host.metadata();
  host.trigger = {};
  for (const { name, bindings } of functions) {
    await host.load(name);
    host.trigger[name] = Object.keys(bindings).find((binding) => /trigger$/i.test(bindings[binding].type));
  }
  host.uri = new URL(capabilities.HttpUri);
  return host;
}

/** As a host does it: the request at the worker's port and the invocation beside it. */
async function stream(host, method, query, body) {
  const invocationId = `stream-${Math.random().toString(16).slice(2)}`;
  const answer = new Promise((resolve, reject) => {
    const headers = { 'x-ms-invocation-id': invocationId, 'x-forwarded-host': 'app.example', 'x-forwarded-proto': 'http' };
    const call = http.request({ host: host.uri.hostname, port: host.uri.port, method, path: `/api/echo/9?${query}`, headers }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() }));
    });
    call.on('error', reject);
    call.end(body);
  });
  answer.catch(() => {});
  const triggerMetadata = { id: { string: '9' }, Headers: { json: '{"x-sent":"yes"}' } };
  const inputData = [{ name: host.trigger.echo, data: { http: { method, url: 'http://app.example/api/echo/9' } } }];
  const request = { invocationId, functionId: 'echo', inputData, triggerMetadata };
  const response = await host.ask('invocationRequest', request, 'invocationResponse');
  return { ...response, answer };
}

test('HttpStream.AnswersTravelAtTheWorkersPort', async (t) => {
  const host = await start(t);
  const { result, returnValue, answer } = await stream(host, 'POST', 'a=1', 'some text');
  assert.equal(result.status, 'Success');
  assert.equal(returnValue?.http ?? null, null);
  const { status, headers, text } = await answer;
  assert.deepEqual([status, headers['x-id'], headers['x-seen'], text], [201, '9', 'yes', 'got some text']);
  // The library encodes a cookie's value, and nobody decodes it on the way.
  assert.deepEqual(headers['set-cookie'], ['c=a%20b; Max-Age=5; Path=/; HttpOnly; SameSite=Strict']);
});

test('HttpStream.FailuresAndOtherTriggersAreAsEver', async (t) => {
  const host = await start(t);
  const failed = await stream(host, 'GET', 'fail=1');
  assert.equal(failed.result.exception.message, 'asked to');
  assert.equal((await host.fire('q', json(3))).returnValue.int, 3);
});

test('HttpStream.TheListenerIsOnTheLoopbackAndAdvertised', async (t) => {
  const host = await ScriptedHost.start(t);
  const { capabilities } = await host.init(makeApp(t, { 'index.js': source }));
  assert.match(capabilities.HttpUri, /^http:\/\/127\.0\.0\.1:\d+\/$/);
  assert.equal(capabilities.MyCapability, 'on');
  await host.init('');
  const folder = `/proc/${host.process.pid}`;
  const listening = ['tcp', 'tcp6'].flatMap((table) => fs.readFileSync(`${folder}/net/${table}`, 'utf8').split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/)).filter((columns) => columns[3] === '0A');
  const mine = new Set(fs.readdirSync(`${folder}/fd`).map((fd) => {
    try { return fs.readlinkSync(`${folder}/fd/${fd}`); } catch { return ''; }
  }));
  const addresses = listening.filter((columns) => mine.has(`socket:[${columns[9]}]`)).map((columns) => columns[1].split(':')[0]);
  assert.deepEqual(addresses, ['0100007F']);
});
