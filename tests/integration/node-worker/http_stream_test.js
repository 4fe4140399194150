// Apps with HTTP streams: the library listens by itself, and the host still sees ordinary requests and answers.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
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
app.http('silent', { methods: ['GET'], route: 'echo/{id}', handler: async () => undefined });
app.storageQueue('q', { queueName: 'q', connection: 'C', handler: (n) => n });`;

const text = ({ bytes }) => Buffer.from(bytes).toString();

async function start(t) {
  const host = await ScriptedHost.start(t);
  await host.bringUp(makeApp(t, { 'index.js': source }));
  return host;
}

const request = (method, query, body) => ({
  http: {
    method, url: `http://app.example/api/echo/9?${query}`, nullableParams: { id: { value: '9' } },
    nullableHeaders: { 'x-sent': { value: 'yes' } }, body: body && { bytes: Buffer.from(body) },
  },
});

test('HttpStream.AnswersTravelInFunctionRpc', async (t) => {
  const host = await start(t);
  const { result, returnValue } = await host.fire('echo', request('POST', 'a=1', 'some text'));
  assert.equal(result.status, 'Success');
  const { statusCode, headers, cookies, body } = returnValue.http;
  assert.equal(statusCode, '201');
  assert.equal(headers['x-id'], '9');
  assert.equal(headers['x-seen'], 'yes');
  assert.equal(text(body), 'got some text');
  const [{ name, value, path, maxAge, sameSite, httpOnly }] = cookies;
  assert.deepEqual([name, value, path.value, maxAge.value, sameSite, httpOnly.value], ['c', 'a b', '/', 5, 'Strict', true]);
  const many = await Promise.all(Array.from({ length: 20 }, (_, n) => host.fire('echo', request('POST', '', `${n}`))));
  assert.deepEqual(many.map((each) => text(each.returnValue.http.body)), Array.from({ length: 20 }, (_, n) => `got ${n}`));
});

test('HttpStream.FailuresAndOtherTriggersAreAsEver', async (t) => {
  const host = await start(t);
  const failed = await host.fire('echo', request('GET', 'fail=1'));
  assert.equal(failed.result.exception.message, 'asked to');
  assert.equal((await host.fire('q', json(3))).returnValue.int, 3);
  assert.equal(text((await host.fire('echo', request('GET', ''))).returnValue.http.body), 'got ');
});

test('HttpStream.AFunctionThatReturnsNothingAnswersAtOnce', async (t) => {
  const host = await start(t);
  const { result, returnValue } = await host.fire('silent', request('GET', ''));
  assert.equal(result.status, 'Success');
  assert.equal(returnValue?.http ?? null, null);
});

test('HttpStream.TheListenerIsOnTheLoopbackAndNotAdvertised', async (t) => {
  const host = await ScriptedHost.start(t);
  const { capabilities } = await host.init(makeApp(t, { 'index.js': source }));
  assert.equal(capabilities.HttpUri, undefined);
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
