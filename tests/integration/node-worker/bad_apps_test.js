// Apps that are wrong or unusual: one clear reason for each, in the load answer and in the metadata, and a worker that lives on.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { ScriptedHost, json, makeApp } = require('./scripted_host');

const queue = (name, handler = '() => 1') => `app.storageQueue('${name}', { queueName: 'q', connection: 'C', handler: ${handler} });`;
const library = `const { app } = require('@azure/functions');\n`;

/** The reason that metadata, load and invocation all give; the init itself succeeds, because the worker is well. */
async function reasonFor(t, files, manifest) {
  const host = await ScriptedHost.start(t);
  assert.equal((await host.init(makeApp(t, files, manifest))).result.status, 'Success');
  const metadata = await host.metadata();
  assert.equal(metadata.result.status, 'Failure');
  assert.deepEqual(metadata.functionMetadataResults, []);
  assert.equal(metadata.useDefaultMetadataIndexing, false);
  const load = await host.load('f');
  assert.equal(load.result.status, 'Failure');
  assert.equal(load.result.exception.message, metadata.result.exception.message);
  const { result } = await host.invoke('f', []);
  assert.equal(result.status, 'Failure');
  assert.equal(result.exception.message, metadata.result.exception.message);
  await host.ask('workerStatusRequest', {}, 'workerStatusResponse');
  host.endStream();
  assert.equal((await host.ended()).code, 0);
  assert.match(host.stderr, /LanguageWorkerConsoleLog\[error\] the application failed to load/);
  return metadata.result.exception;
}

test('BadApp.EntryPointThatThrowsIsToldWithItsFileAndStack', async (t) => {
  const { message, stackTrace } = await reasonFor(t, { 'index.js': `throw new Error('no database');` });
  assert.equal(message, `entry point 'index.js' failed: no database`);
  assert.match(stackTrace, /index\.js:1/);
});

test('BadApp.EntryPointThatThrowsAfterARegistrationRunsNothing', async (t) => {
  const { message } = await reasonFor(t, { 'index.js': `${library}${queue('f')}\nthrow new Error('too late');` });
  assert.match(message, /too late/);
});

test('BadApp.DuplicateNamesAreTold', async (t) => {
  const files = { 'a.js': library + queue('f'), 'b.js': library + queue('f') };
  const { message } = await reasonFor(t, files, { main: '*.js' });
  assert.equal(message, `entry point 'b.js' failed: there are two functions with the name 'f'; give one of them another name`);
});

test('BadApp.SyntaxErrorIsToldWithItsLine', async (t) => {
  const { stackTrace } = await reasonFor(t, { 'index.js': 'const a = 1;\nconst = 2;' });
  assert.match(stackTrace, /index\.js:2/);
});

test('BadApp.AnEntryPointRunsOnceEvenIfItRequiresWhatCannotBeRequired', async (t) => {
  const files = {
    'index.js': `${library}${queue('f')}\nrequire('./later.mjs');`,
    'later.mjs': `await Promise.resolve(); export default 1;`,
  };
  const { message } = await reasonFor(t, files);
  assert.match(message, /require/);
  assert.doesNotMatch(message, /two functions/);
});

test('BadApp.MissingPackageIsTold', async (t) => {
  const { message } = await reasonFor(t, { 'index.js': `require('no-such-package');` });
  assert.match(message, /Cannot find module 'no-such-package'/);
});

test('BadApp.MainThatMatchesNothingIsTold', async (t) => {
  assert.match((await reasonFor(t, {}, { main: 'src/*.js' })).message, /"main" is 'src\/\*\.js', and no file matches it/);
  assert.match((await reasonFor(t, {}, { main: 'index.js' })).message, /"main" is 'index\.js', and no file matches it/);
  assert.match((await reasonFor(t, { 'package.json': '{' }, null)).message, /package\.json is not JSON/);
});

test('BadApp.AppStartHookThatThrowsFailsTheApp', async (t) => {
  const hook = `app.hook.appStart(() => { throw new Error('not ready'); });`;
  const { message } = await reasonFor(t, { 'index.js': library + queue('f') + hook });
  assert.equal(message, 'not ready');
});

test('BadApp.WithoutFunctionsTheHostIsToIndexItself', async (t) => {
  for (const [files, manifest] of [[{ 'index.js': '' }, { main: 'index.js' }], [{}, { name: 'n' }], [{}, null]]) {
    const host = await ScriptedHost.start(t);
    await host.init(makeApp(t, files, manifest));
    const { result, useDefaultMetadataIndexing, functionMetadataResults } = await host.metadata();
    assert.equal(result.status, 'Success');
    assert.equal(useDefaultMetadataIndexing, true);
    assert.deepEqual(functionMetadataResults, []);
    const load = await host.load('guid', { name: 'old', scriptFile: '/app/old/index.js' });
    assert.match(load.result.exception.message, /'old' is described by a function\.json/);
  }
});

test('BadApp.RegistrationAfterTheMetadataIsRefused', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.bringUp(makeApp(t, { 'index.js': library + queue('late', `() => { ${queue('more')} }`) }));
  const { result } = await host.fire('late', json(1));
  assert.match(result.exception.message, /function 'more' was registered too late/);
  assert.equal((await host.metadata()).functionMetadataResults.length, 1);
});

test('App.EsModulesAndPatternsOverFoldersLoad', async (t) => {
  const esm = (name) => `import { app } from '@azure/functions';\nawait null;\n${queue(name)}`;
  const host = await ScriptedHost.start(t);
  const files = {
    'src/index.js': esm('index'), 'src/deep/er/one.mjs': esm('one'), 'src/deep/two.cjs': library + queue('two'),
    'src/deep/.hidden.js': 'throw 1', 'src/other/not.js': 'throw 1',
  };
  const functions = await host.bringUp(makeApp(t, files, { type: 'module', main: 'src/{index.js,deep/**/*.{js,mjs,cjs}}' }));
  assert.deepEqual(functions.map(({ name }) => name).sort(), ['index', 'one', 'two']);
  assert.equal((await host.fire('one', json(1))).returnValue.int, 1);
});

test('App.AnyDepthMayRequireTheCoreModule', async (t) => {
  const host = await ScriptedHost.start(t);
  const check = `const core = require('@azure/functions-core');
    module.exports = () => ({ keys: Object.keys(core).sort(), model: core.getProgrammingModel().name, host: core.hostVersion,
      resolved: require.resolve('@azure/functions-core') });`;
  const index = `${library}const check = require('./lib/check'); ${queue('f', '() => check()')}
    const hook = require('@azure/functions-core').registerHook('preInvocation', () => { throw new Error('disposed of'); }); hook.dispose();
    try { require('@azure/functions-core').registerHook('noSuchHook', () => {}); } catch (e) { console.log(e.message); }`;
  await host.bringUp(makeApp(t, { 'index.js': index, 'lib/check.js': check }));
  assert.deepEqual(JSON.parse((await host.fire('f', json(1))).returnValue.json), {
    keys: ['Disposable', 'getProgrammingModel', 'hostVersion', 'log', 'registerFunction', 'registerHook', 'setProgrammingModel', 'version'],
    model: '@azure/functions', host: '4.0.0', resolved: '@azure/functions-core',
  });
  host.endStream();
  await host.ended();
  assert.match(host.stdout, /there is no hook 'noSuchHook'/);
});
