// What an invocation gives and takes: kinds of values, outputs, logs, hooks, retries, many at once.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { ScriptedHost, json, makeApp } = require('./scripted_host');

const queue = (name, handler, more = '') =>
  `app.storageQueue('${name}', { queueName: '${name}', connection: 'C', ${more} handler: ${handler} });`;
const appOf = (t, ...lines) =>
  makeApp(t, { 'index.js': [`const { app, output, input } = require('@azure/functions');`, ...lines].join('\n') });

async function start(t, ...lines) {
  const host = await ScriptedHost.start(t);
  await host.bringUp(appOf(t, ...lines));
  return host;
}

test('Invocation.ReturnValuesKeepTheirKind', async (t) => {
  const host = await start(t, queue('give', `(what) => ({
    text: 'plain', object: { a: [1] }, bytes: Buffer.from([1, 2, 255]), view: new Uint16Array([513]), whole: 42, negative: -7, broken: 0.5,
    huge: 1e300, yes: true, nothing: undefined, nil: null })[what]`));
  const given = async (what) => (await host.fire('give', json(what))).returnValue;
  assert.equal((await given('text')).string, 'plain');
  assert.equal((await given('object')).json, '{"a":[1]}');
  assert.deepEqual([...(await given('bytes')).bytes], [1, 2, 255]);
  assert.deepEqual([...(await given('view')).bytes], [1, 2]);
  assert.equal((await given('whole')).int, 42);
  assert.equal((await given('negative')).int, -7);
  assert.equal((await given('broken')).double, 0.5);
  assert.equal((await given('huge')).double, 1e300);
  assert.equal((await given('yes')).json, 'true');
  assert.equal(await given('nothing'), null);
  assert.equal(await given('nil'), null);
});

test('Invocation.InputsArriveAsTheValuesTheyAre', async (t) => {
  const host = await start(t, queue('see', `(value, context) => ({
    type: Buffer.isBuffer(value) ? 'buffer' : Array.isArray(value) ? 'array' : typeof value,
    value: Buffer.isBuffer(value) ? [...value] : value, metadata: context.triggerMetadata })`));
  const seen = async (data, triggerMetadata) => JSON.parse((await host.fire('see', data, { triggerMetadata })).returnValue.json);
  assert.deepEqual(await seen({ string: 'no json' }), { type: 'string', value: 'no json', metadata: {} });
  assert.deepEqual(await seen({ string: '[1]' }), { type: 'array', value: [1], metadata: {} });
  assert.deepEqual(await seen({ int: -3 }), { type: 'number', value: -3, metadata: {} });
  assert.deepEqual(await seen({ double: 0.25 }), { type: 'number', value: 0.25, metadata: {} });
  assert.deepEqual(await seen({ bytes: Buffer.from([9]) }), { type: 'buffer', value: [9], metadata: {} });
  assert.deepEqual(await seen({}), { type: 'undefined', metadata: {} });
  const { metadata } = await seen(json(1), { DequeueCount: { int: 4 }, Id: { string: 'm1' } });
  assert.deepEqual(metadata, { dequeueCount: 4, id: 'm1' });
});

test('Invocation.ExtraInputsAndOutputsTravelByName', async (t) => {
  const host = await start(t,
    `const copy = output.storageQueue({ queueName: 'copies', connection: 'C', name: 'copy' });
     const blob = input.storageBlob({ path: 'in/x', connection: 'C', name: 'blob' });`,
    queue('fan', `(value, context) => {
      context.extraOutputs.set(copy, { copied: value, blob: context.extraInputs.get(blob) });
      return 'r'; }`,
      'extraOutputs: [copy], extraInputs: [blob], return: output.storageQueue({ queueName: "r", connection: "C" }),'));
  const inputs = [{ name: host.trigger.fan, data: json(1) }, { name: 'blob', data: { string: 'text' } }];
  const answer = await host.invoke('fan', inputs);
  assert.equal(answer.returnValue.string, 'r');
  assert.equal(answer.outputData[0].name, 'copy');
  assert.deepEqual(JSON.parse(answer.outputData[0].data.json), { copied: 1, blob: 'text' });
});

test('Invocation.InputUnderAnUnknownNameFails', async (t) => {
  const host = await start(t, queue('one', '() => 1'));
  const answer = await host.invoke('one', [{ name: 'other', data: json(1) }]);
  assert.equal(answer.result.status, 'Failure');
  assert.match(answer.result.exception.message, /"other"/);
});

test('Invocation.WhateverIsThrownBecomesAFailure', async (t) => {
  const host = await start(t, queue('fail', `async (what) => {
    if (what === 'text') throw 'just text';
    if (what === 'object') throw { code: 5 };
    if (what === 'nothing') throw undefined;
    if (what === 'cause') throw new TypeError('outer', { cause: new Error('inner') });
    return { toJSON() { throw new Error('cannot be written') } };
  }`));
  const exception = async (what) => {
    const { result } = await host.fire('fail', json(what));
    assert.equal(result.status, 'Failure');
    return result.exception;
  };
  assert.equal((await exception('text')).message, 'just text');
  assert.equal((await exception('object')).message, '{ code: 5 }');
  assert.match((await exception('nothing')).message, /undefined/);
  const cause = await exception('cause');
  assert.equal(cause.type, 'TypeError');
  assert.match(cause.stackTrace, /outer[^]*caused by: Error: inner/);
  assert.equal((await exception('answer')).message, 'cannot be written');
});

test('Invocation.LogsKeepOrderAndLevelBeforeTheAnswer', async (t) => {
  const host = await start(t, queue('log', `async (n, context) => {
    context.trace('t'); context.debug('d'); context.log('i %s', { a: 1 }); context.warn('w'); context.error(new Error('e').message);
    await null; context.info('last'); console.log('on stdout'); return 1; }`));
  const [first, second] = await Promise.all([host.fire('log', json(1)), host.fire('log', json(2))]);
  for (const { invocationId } of [first, second]) {
    const told = host.messages.filter(({ rpcLog, invocationResponse }) => (rpcLog ?? invocationResponse)?.invocationId === invocationId);
    assert.deepEqual(told.map(({ rpcLog }) => rpcLog && `${rpcLog.level} ${rpcLog.message}`), [
      'Trace t', 'Debug d', 'Information i { a: 1 }', 'Warning w', 'Error e', 'Information last', undefined,
    ]);
    assert.ok(told.slice(0, -1).every(({ requestId, rpcLog }) => requestId === '' && rpcLog.logCategory === 'User'));
    assert.equal(told[0].rpcLog.category, 'log.Invocation');
  }
  host.endStream();
  await host.ended();
  assert.equal(host.stdout, 'on stdout\non stdout\n');
});

test('Invocation.HooksRunAroundItAndMayChangeIt', async (t) => {
  const host = await start(t,
    `app.hook.appStart((c) => { c.hookData.started = 'yes'; });
     app.hook.preInvocation((c) => { c.hookData.seen = [c.inputs[0]]; c.inputs[0] += 1; c.invocationContext.log('pre'); });
     app.hook.preInvocation((c) => { const f = c.functionHandler; c.functionHandler = async (...a) => (await f(...a)) * 10; });
     app.hook.postInvocation((c) => { c.hookData.seen.push(c.result);
       if (c.inputs[0] === 100) { c.error = null; c.result = 'rescued'; } else if (!c.error) c.result = { seen: c.hookData.seen };
       c.invocationContext.log('post'); });`,
    queue('ten', `(n, context) => {
      context.log('run');
      if (n === 100) throw new Error('no');
      if (n === 200) throw new Error('stays');
      return n; }`));
  const answer = await host.fire('ten', json(4));
  assert.deepEqual(JSON.parse(answer.returnValue.json), { seen: [4, 50] });
  assert.deepEqual(host.logs(answer.invocationId).map(({ message }) => message), ['pre', 'run', 'post']);
  assert.equal((await host.fire('ten', json(99))).returnValue.string, 'rescued');
  const failed = await host.fire('ten', json(199));
  assert.equal(failed.result.exception.message, 'stays');
});

test('Invocation.PreHookThatThrowsFailsItBeforeTheFunctionRuns', async (t) => {
  const host = await start(t, `app.hook.preInvocation(() => { throw new Error('not today'); });`,
    queue('never', `(n, context) => { context.log('ran'); }`));
  const answer = await host.fire('never', json(1));
  assert.equal(answer.result.exception.message, 'not today');
  assert.deepEqual(host.logs(answer.invocationId), []);
});

test('Invocation.LogHookSeesAndChangesLogs', async (t) => {
  const host = await start(t,
    `app.hook.log((c) => { c.message = c.category + ':' + c.message; if (c.level === 'warning') c.level = 'error'; });`,
    queue('say', `(n, context) => { context.log('a'); context.warn('b'); }`));
  const { invocationId } = await host.fire('say', json(1));
  assert.deepEqual(host.logs(invocationId).map(({ level, message }) => `${level} ${message}`), ['Information user:a', 'Error user:b']);
});

test('Invocation.RetryAndTraceContextReachTheFunction', async (t) => {
  const host = await start(t, queue('again', `(n, { retryContext, traceContext }) => ({ retryContext, traceContext })`,
    `retry: { strategy: 'exponentialBackoff', maxRetryCount: 5, minimumInterval: 2000, maximumInterval: { minutes: 1 } },`));
  const [{ retryOptions }] = (await host.metadata()).functionMetadataResults;
  assert.equal(retryOptions.retryStrategy, 'exponential_backoff');
  assert.equal(retryOptions.maxRetryCount, 5);
  assert.equal(retryOptions.minimumInterval.seconds, 2);
  assert.equal(retryOptions.maximumInterval.seconds, 60);
  const answer = await host.fire('again', json(1), {
    retryContext: { retryCount: 0, maxRetryCount: 5, exception: { message: 'before' } },
    traceContext: { traceParent: '00-a-b-01', traceState: 's' },
  });
  const { retryContext, traceContext } = JSON.parse(answer.returnValue.json);
  assert.equal(retryContext.retryCount, 0);
  assert.equal(retryContext.maxRetryCount, 5);
  assert.equal(retryContext.exception.message, 'before');
  assert.equal(traceContext.traceParent, '00-a-b-01');
});

test('Invocation.FiftySleepersSleepTogether', async (t) => {
  // Each waits until all have begun, which only happens when they run at the same time.
  const host = await start(t, `let begun = 0; let wake; const all = new Promise((resolve) => (wake = resolve));`,
    queue('sleep', `async (n) => { if (++begun === 50) wake(); await all; return n; }`));
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => host.fire('sleep', json(n))));
  assert.deepEqual(answers.map(({ returnValue }) => returnValue.int), Array.from({ length: 50 }, (_, n) => n));
});

test('Invocation.HttpAnswersCarryStatusHeadersCookiesAndBytes', async (t) => {
  const host = await start(t, `app.http('h', { methods: ['GET'], handler: (request) => {
    if (request.query.get('what') === 'text') return 'not an object';
    if (request.query.get('what') === 'nothing') return undefined;
    return { status: 418, headers: { 'X-A': 'b' }, body: Buffer.from([0, 255]), cookies: [
      { name: 'c', value: 'v', path: '/', secure: true, httpOnly: false, maxAge: 60, sameSite: 'Strict', expires: new Date(5000) },
      { name: 'd', value: '', sameSite: 'None' }, { name: 'e', value: 'f' }] }; } });`);
  const get = (what) =>
    host.fire('h', { http: { method: 'GET', url: `http://x/api/h?what=${what}`, nullableQuery: { what: { value: what } } } });
  const { http } = (await get('all')).returnValue;
  assert.equal(http.statusCode, '418');
  assert.equal(http.headers['x-a'], 'b');
  assert.deepEqual([...http.body.bytes], [0, 255]);
  const [c, d, e] = http.cookies;
  assert.deepEqual([c.name, c.value, c.path.value, c.secure.value, c.httpOnly.value, c.maxAge.value, c.sameSite, c.expires.value.seconds],
    ['c', 'v', '/', true, false, 60, 'Strict', 5]);
  assert.equal(c.domain, null);
  assert.deepEqual([d.sameSite, e.sameSite], ['ExplicitNone', 'None']);
  assert.match((await get('text')).result.exception.message, /must be an object/);
  const nothing = await get('nothing');
  assert.equal(nothing.result.status, 'Success');
  assert.equal(nothing.returnValue, null);
});

test('Invocation.AnswerOverTheLimitFailsAloneAndTheStreamLives', async (t) => {
  const host = await ScriptedHost.start(t, { messageBytesMax: 20000 });
  await host.bringUp(appOf(t, queue('grow', `(n, context) => { context.log('x'.repeat(n)); return 'y'.repeat(n); }`)));
  const answer = await host.fire('grow', json(30000));
  assert.equal(answer.result.status, 'Failure');
  assert.match(answer.result.exception.message, /more than a message's limit of 20000 bytes/);
  assert.match(host.logs(answer.invocationId)[0].message, /^x+ \.\.\. \(cut\)$/);
  assert.equal((await host.fire('grow', json(10))).returnValue.string, 'y'.repeat(10));
});

test('Invocation.ManyLogsAtOnceAllArrive', async (t) => {
  const host = await start(t, queue('flood', `(n, context) => { for (let i = 0; i < n; ++i) context.log('line ' + i); }`));
  const { invocationId } = await host.fire('flood', json(12000));
  assert.equal(host.logs(invocationId).length, 12000);
});
