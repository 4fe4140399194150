// The sample app, a plain npm @azure/functions app, unmodified: registered, loaded and invoked through the real worker process.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { ScriptedHost, json, sampleApp } = require('./scripted_host');

test('SampleApp.InitTellsCapabilitiesAndTheLibrarysVersion', async (t) => {
  const host = await ScriptedHost.start(t);
  assert.equal(host.messages[0].requestId, 'start-1');
  assert.equal(host.messages[0].startStream.workerId, 'worker-1');
  const answer = await host.init(sampleApp);
  assert.equal(answer.result.status, 'Success');
  assert.deepEqual(answer.capabilities, {
    RawHttpBodyBytes: 'true', RpcHttpTriggerMetadataRemoved: 'true', RpcHttpBodyOnly: 'true', IgnoreEmptyValuedRpcHttpHeaders: 'true',
    UseNullableValueDictionaryForHttp: 'true', WorkerStatus: 'true', TypedDataCollection: 'true', HandlesWorkerTerminateMessage: 'true',
  });
  assert.equal(answer.workerMetadata.runtimeName, 'node');
  assert.equal(answer.workerMetadata.runtimeVersion, process.versions.node);
  assert.equal(answer.workerMetadata.customProperties.modelName, '@azure/functions');
  assert.match(answer.workerMetadata.customProperties.modelVersion, /^4\./);
});

test('SampleApp.MetadataHasEveryTriggerWithItsRawBinding', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.init(sampleApp);
  const answer = await host.metadata();
  assert.equal(answer.result.status, 'Success');
  assert.equal(answer.useDefaultMetadataIndexing, false);
  const byName = Object.fromEntries(answer.functionMetadataResults.map((each) => [each.name, each]));
  assert.deepEqual(Object.keys(byName).sort(), ['cleanUp', 'greet', 'processOrder', 'readSensors', 'shipOrder']);
  const raw = (name) => byName[name].rawBindings.map((text) => JSON.parse(text));
  for (const [name, each] of Object.entries(byName)) {
    assert.equal(each.functionId, name);
    assert.equal(each.status.status, 'Success');
    assert.deepEqual(Object.keys(each.bindings).sort(), raw(name).map((binding) => binding.name).sort());
  }
  const has = (name, expected) => {
    const binding = raw(name).find(({ type }) => type === expected.type);
    for (const [key, value] of Object.entries(expected)) assert.deepEqual(binding[key], value, `${name}.${key}`);
  };
  has('processOrder', { type: 'queueTrigger', direction: 'in', queueName: 'orders', connection: 'AzureWebJobsStorage' });
  has('greet', { type: 'httpTrigger', direction: 'in', route: 'greet/{name}', methods: ['GET', 'POST'], authLevel: 'anonymous' });
  has('greet', { type: 'http', direction: 'out', name: '$return' });
  has('cleanUp', { type: 'timerTrigger', schedule: '0 */5 * * * *' });
  has('shipOrder', { type: 'serviceBusTrigger', queueName: 'shipments', connection: 'ServiceBusConnection' });
  has('readSensors', { type: 'eventHubTrigger', eventHubName: 'sensors', cardinality: 'many', connection: 'EventHubConnection' });
  assert.equal(byName.greet.bindings.$return.direction, 'out');
  const { maxRetryCount, retryStrategy, delayInterval } = byName.processOrder.retryOptions;
  assert.deepEqual({ maxRetryCount, retryStrategy, delay: delayInterval.seconds }, {
    maxRetryCount: 3, retryStrategy: 'fixed_delay', delay: 5,
  });
  assert.equal(byName.greet.retryOptions, null);
});

test('SampleApp.EveryFunctionLoadsAndAnUnknownOneDoesNot', async (t) => {
  const host = await ScriptedHost.start(t);
  for (const { name } of await host.bringUp(sampleApp)) {
    const answer = await host.load(name);
    assert.equal(answer.functionId, name);
    assert.equal(answer.result.status, 'Success');
  }
  const answer = await host.load('nobody');
  assert.equal(answer.result.status, 'Failure');
  assert.match(answer.result.exception.message, /registered no function 'nobody'/);
});

test('SampleApp.QueueFunctionAnswersWithJsonAfterItsLog', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.bringUp(sampleApp);
  const items = [{ price: 2, quantity: 3 }, { price: 1.5, quantity: 2 }];
  const answer = await host.fire('processOrder', json({ id: 'A7', items }), { triggerMetadata: { DequeueCount: json(1) } });
  assert.equal(answer.result.status, 'Success');
  assert.deepEqual(JSON.parse(answer.returnValue.json), { id: 'A7', total: 9, items: 2 });
  const [log] = host.logs(answer.invocationId);
  assert.equal(log.message, 'order A7 with 2 items');
  assert.equal(log.level, 'Information');
  assert.equal(log.logCategory, 'User');
  const place = (accept) => host.messages.findIndex(accept);
  assert.ok(place(({ rpcLog }) => rpcLog === log) < place(({ invocationResponse }) => invocationResponse === answer));
});

test('SampleApp.QueueFunctionThatThrowsAnswersWithMessageAndStack', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.bringUp(sampleApp);
  const answer = await host.fire('processOrder', json({ id: 'A8', items: [] }));
  assert.equal(answer.result.status, 'Failure');
  assert.equal(answer.result.exception.message, 'order A8 is empty');
  assert.match(answer.result.exception.stackTrace, /process_order\.js:\d+/);
});

test('SampleApp.HttpFunctionSeesRouteQueryAndBody', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.bringUp(sampleApp);
  const request = {
    method: 'POST',
    url: 'http://localhost/api/greet/Ada?loud=yes',
    nullableParams: { name: { value: 'Ada' } },
    nullableQuery: { loud: { value: 'yes' } },
    nullableHeaders: { 'content-type': { value: 'text/plain' } },
    body: { bytes: Buffer.from('Good morning') },
  };
  const { result, returnValue } = await host.fire('greet', { http: request });
  assert.equal(result.status, 'Success');
  assert.equal(returnValue.http.statusCode, '200');
  assert.equal(returnValue.http.headers['x-greeted'], 'Ada');
  assert.match(returnValue.http.headers['content-type'], /application\/json/);
  assert.deepEqual(JSON.parse(Buffer.from(returnValue.http.body.bytes)), { greeting: 'GOOD MORNING, ADA' });
});

test('SampleApp.TimerServiceBusAndEventHubFunctionsRun', async (t) => {
  const host = await ScriptedHost.start(t);
  await host.bringUp(sampleApp);
  const timer = await host.fire('cleanUp', json({ Schedule: { AdjustForDST: true }, IsPastDue: true }));
  assert.equal(timer.result.status, 'Success');
  assert.equal(host.logs(timer.invocationId)[0].message, 'cleaning up, late');
  const message = await host.fire('shipOrder', { string: '{"id": 5}' });
  assert.deepEqual(JSON.parse(message.returnValue.json), { shipped: 5 });
  const events = await host.fire('readSensors', { collectionString: { string: ['{"t": 1}', '{"t": 2}'] } });
  assert.equal(events.returnValue.int, 2);
});
