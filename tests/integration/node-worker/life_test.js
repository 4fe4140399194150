// The life of the process: arguments, the order of messages, specialization from a placeholder, and every way to end.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { ScriptedHost, json, makeApp, sampleApp, workerFolder } = require('./scripted_host');

const library = `const { app } = require('@azure/functions');\n`;
const queue = (name, handler = '() => 1') => `app.storageQueue('${name}', { queueName: 'q', connection: 'C', handler: ${handler} });`;
const oneFunction = (t, handler) => makeApp(t, { 'index.js': library + queue('f', handler) });

test('Life.TheOlderArgumentsServeToo', async (t) => {
  const host = await ScriptedHost.start(t, {
    args: (port) => ['--host', '127.0.0.1', '--port', `${port}`, '--workerId', '12345', '--requestId=99',
      '--grpcMaxMessageLength', '4194304'],
  });
  assert.equal(host.messages[0].startStream.workerId, '12345');
  assert.equal(host.messages[0].requestId, '99');
});

test('Life.MissingOrWrongArgumentsAreToldWithTheUsage', async (t) => {
  for (const [args, reason] of [
    [[], /--functions-uri is missing/],
    [['--functions-uri', 'http://127.0.0.1:1/'], /--functions-worker-id is missing/],
    [['--functions-uri', '127.0.0.1:1'], /must begin with http|is no URI/],
    [['--functions-uri', 'unix:/tmp/x', '--functions-worker-id', 'w', '--functions-request-id', 'r'], /must begin with http/],
  ]) {
    const host = new ScriptedHost();
    t.after(() => host.close());
    host.spawn({ args: () => args });
    assert.equal((await host.ended()).code, 1);
    assert.match(host.stdout, reason);
    assert.match(host.stdout, /usage:/);
  }
});

test('Life.NoListenerEndsWithOne', async (t) => {
  const host = new ScriptedHost();
  t.after(() => host.close());
  host.port = 1;
  host.spawn();
  assert.equal((await host.ended()).code, 1);
  assert.match(host.stderr, /the stream to the host at 127\.0\.0\.1:1 broke/);
});

test('Life.AProxyOfTheEnvironmentIsNotAskedForTheHost', async (t) => {
  const host = await ScriptedHost.start(t, { env: { http_proxy: 'http://127.0.0.1:1', grpc_proxy: 'http://127.0.0.1:1' } });
  assert.equal((await host.init()).result.status, 'Success');
});

test('Life.StreamEndedWellIsZeroAndBrokenIsOne', async (t) => {
  const well = await ScriptedHost.start(t);
  well.endStream();
  assert.equal((await well.ended()).code, 0);
  const broken = await ScriptedHost.start(t);
  broken.failStream();
  assert.equal((await broken.ended()).code, 1);
  assert.match(broken.stderr, /the test broke the stream/);
});

test('Life.StatusIsAnsweredBeforeInit', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.ask('workerStatusRequest', {}, 'workerStatusResponse');
});

test('Life.MetadataAskedBeforeInitLocksNothing', async (t) => {
  const host = await ScriptedHost.start(t);
  assert.equal((await host.metadata()).useDefaultMetadataIndexing, true);
  await host.init(sampleApp);
  assert.equal((await host.metadata()).functionMetadataResults.length, 5);
});

test('Life.WhatFollowsAnInitWaitsForTheApp', async (t) => {
  const host = await ScriptedHost.start(t);
  const source = `import { app } from '@azure/functions';
    await (await import('node:fs/promises')).readdir('.');
    app.generic('f', { trigger: { type: 'queueTrigger', name: 'in' }, handler: () => 7 });`;
  const folder = makeApp(t, { 'index.mjs': source }, { main: 'index.mjs' });
  const init = host.init(folder);
  const load = host.load('f');
  const invocation = host.invoke('f', [{ name: 'in', data: json(1) }]);
  assert.equal((await init).result.status, 'Success');
  assert.equal((await load).result.status, 'Success');
  assert.equal((await invocation).returnValue.int, 7);
});

test('Life.SecondInitChangesNothing', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.bringUp(sampleApp);
  const again = await host.init(sampleApp);
  assert.equal(again.result.status, 'Success');
  assert.equal(again.capabilities.WorkerStatus, 'true');
  assert.equal((await host.metadata()).functionMetadataResults.length, 5);
});

test('Life.InitWithAMissingFolderFailsAndMayBeRepeated', async (t) => {
  const host = await ScriptedHost.start(t);
  const missing = await host.init('/no/such/folder');
  assert.equal(missing.result.status, 'Failure');
  assert.match(missing.result.exception.message, /\/no\/such\/folder/);
  assert.equal((await host.init(sampleApp)).result.status, 'Success');
  assert.equal((await host.metadata()).functionMetadataResults.length, 5);
});

test('Life.PlaceholderBecomesAWorkerOfItsAppByReload', async (t) => {
  const host = await ScriptedHost.start(t, { env: { OLD: 'gone' } });
  assert.equal((await host.init('')).result.status, 'Success');
  const folder = oneFunction(t, `() => ({ old: process.env.OLD ?? null, new: process.env.NEW, folder: process.cwd() })`);
  const answer = await host.reload(folder, { PATH: process.env.PATH, NEW: 'here' });
  assert.equal(answer.result.status, 'Success');
  assert.equal(answer.capabilitiesUpdateStrategy, 'replace');
  assert.equal(answer.capabilities.RpcHttpBodyOnly, 'true');
  assert.equal(answer.workerMetadata.customProperties.modelName, '@azure/functions');
  const [{ bindings }] = (await host.metadata()).functionMetadataResults;
  await host.load('f');
  const { returnValue } = await host.invoke('f', [{ name: Object.keys(bindings)[0], data: json(1) }]);
  assert.deepEqual(JSON.parse(returnValue.json), { old: null, new: 'here', folder: fs.realpathSync(folder) });
});

test('Life.SecondReloadFailsClearlyAndTheFirstAppRunsOn', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.init('');
  const first = oneFunction(t, `() => process.env.WHICH`);
  await host.reload(first, { WHICH: 'first' });
  const answer = await host.reload(oneFunction(t), { WHICH: 'second' });
  assert.equal(answer.result.status, 'Failure');
  assert.match(answer.result.exception.message, /loads an application only once: start a fresh process/);
  const [{ bindings }] = (await host.metadata()).functionMetadataResults;
  const { returnValue } = await host.invoke('f', [{ name: Object.keys(bindings)[0], data: json(1) }]);
  assert.equal(returnValue.string, 'first');
});

test('Life.ReloadOfAMissingFolderChangesNothingAndMayBeRepeated', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.init('');
  const answer = await host.reload('/no/such/folder', {});
  assert.equal(answer.result.status, 'Failure');
  assert.match(answer.result.exception.message, /\/no\/such\/folder/);
  assert.equal((await host.reload(oneFunction(t), {})).result.status, 'Success');
  assert.equal((await host.metadata()).functionMetadataResults.length, 1);
});

test('Life.MessagesNobodyAnswersHarmNothing', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.bringUp(oneFunction(t));
  host.send('invocationCancel', { invocationId: 'x' });
  host.send('fileChangeEventRequest', {});
  host.send('closeSharedMemoryResourcesRequest', { mapNames: ['m'] });
  host.send('workerWarmupRequest', {});
  const { rpcLog } = await host.next('rpcLog', ({ rpcLog: { level } }) => level === 'Error');
  assert.match(rpcLog.message, /workerWarmupRequest/);
  assert.equal((await host.fire('f', json(1))).returnValue.int, 1);
});

test('Life.TerminateRunsHooksSendsTheirLogsAndEndsWithZero', async (t) => {
  const host = await ScriptedHost.start(t);
  const hook = `app.hook.appStart((c) => { c.hookData.mark = 'kept'; });
    const core = require('@azure/functions-core');
    app.hook.appTerminate(async (c) => { await null; core.log('information', 'user', 'bye ' + c.hookData.mark); });`;
  await host.bringUp(makeApp(t, { 'index.js': library + queue('f') + hook }));
  host.send('workerTerminate', { gracePeriod: { seconds: 5 } });
  assert.equal((await host.next('rpcLog', ({ rpcLog }) => rpcLog.message === 'bye kept')).rpcLog.level, 'Information');
  assert.deepEqual(await host.ended(), { code: 0, signal: null });
});

test('Life.TerminateWaitsForNoHookForEver', async (t) => {
  const host = await ScriptedHost.start(t);
  const hooks = [`app.hook.appTerminate(() => new Promise(() => {}));`, `app.hook.appTerminate(() => { throw new Error('bad hook'); });`];
  await host.bringUp(makeApp(t, { 'index.js': library + queue('f') + hooks[0] }));
  host.send('workerTerminate', { gracePeriod: { nanos: 1000000 } });
  assert.equal((await host.ended()).code, 0);
  assert.match(host.stderr, /hooks took longer than the grace period/);
  const failing = await ScriptedHost.start(t);
  await failing.bringUp(makeApp(t, { 'index.js': library + queue('f') + hooks[1] }));
  failing.send('workerTerminate', { gracePeriod: { seconds: 5 } });
  assert.equal((await failing.ended()).code, 0);
  assert.match(failing.stderr, /an appTerminate hook failed: Error: bad hook/);
});

test('Life.TerminateLetsRunningInvocationsFinishAndTakesNoNewOnes', async (t) => {
  const host = await ScriptedHost.start(t);
  const handler = `(n, context) => new Promise((resolve) => {
    process.on('SIGUSR2', () => resolve('done'));
    context.log('began'); })`;
  await host.bringUp(oneFunction(t, handler));
  const running = host.fire('f', json(1));
  await host.next('rpcLog', ({ rpcLog }) => rpcLog.message === 'began');
  host.send('workerTerminate', { gracePeriod: { seconds: 10 } });
  const refused = await host.fire('f', json(2));
  assert.match(refused.result.exception.message, /this worker is ending/);
  host.process.kill('SIGUSR2');
  assert.equal((await running).returnValue.string, 'done');
  assert.equal((await host.ended()).code, 0);
});

test('Life.UserCodeThatExitsGivesItsOwnCodeAndIsNamed', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.bringUp(oneFunction(t, `() => process.exit(7)`));
  host.fire('f', json(1)).catch(() => {});
  assert.equal((await host.ended()).code, 7);
  assert.match(host.stderr, /user code ended the process with exit code 7, 1 invocations were in flight/);
});

test('Life.UncaughtExceptionsAndRejectionsEndWithOne', async (t) => {
  for (const [handler, reason] of [
    [`() => new Promise(() => setImmediate(() => { throw new Error('out of reach'); }))`,
      /user code threw and nobody caught it: Error: out of reach/],
    [`() => { Promise.reject(new Error('forgotten')); return new Promise(() => {}); }`, /rejected and nobody caught it: Error: forgotten/],
  ]) {
    const host = await ScriptedHost.start(t);
    await host.bringUp(oneFunction(t, handler));
    host.fire('f', json(1)).catch(() => {});
    assert.equal((await host.ended()).code, 1);
    assert.match(host.stderr, reason);
  }
});

test('Life.WorkerConfigNamesTheProgramThatRuns', () => {
  const { description } = JSON.parse(fs.readFileSync(path.join(workerFolder, 'worker.config.json'), 'utf8'));
  assert.equal(description.language, 'node');
  assert.equal(description.workerIndexing, 'true');
  assert.ok(fs.existsSync(path.join(workerFolder, description.defaultWorkerPath)));
});
