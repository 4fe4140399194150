'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const values = require('../../../../worker-agent/node/src/rpc_values');
const { loadSchema } = require('../../../../worker-agent/node/src/schema');
const { toRpcException } = require('../../../../worker-agent/node/src/errors');

const schema = loadSchema();
const overTheWire = (message) => schema.decode(schema.encode(message));

test('RpcValues.EveryEnumNameTheLibraryUsesIsKnownToTheSchema', () => {
  for (const level of ['trace', 'debug', 'information', 'warning', 'error', 'critical', 'none']) {
    const sent = values.toLevel(level);
    assert.equal(overTheWire({ rpcLog: { level: sent } }).rpcLog.level.toLowerCase(), level);
  }
  for (const category of ['user', 'system', 'customMetric']) {
    const sent = values.toLogCategory(category);
    assert.equal(overTheWire({ rpcLog: { logCategory: sent } }).rpcLog.logCategory.toLowerCase(), category.toLowerCase());
  }
  assert.equal(values.toLevel('constructor'), 'Information');
});

test('RpcValues.MetadataKeepsEverythingInRawBindings', () => {
  const bindings = {
    in: { type: 'queueTrigger', direction: 'in', queueName: 'q', dataType: 'binary' },
    out: { type: 'queue', direction: 'out', queueName: 'r' },
  };
  const retryOptions = { maxRetryCount: -1, retryStrategy: 'fixedDelay', delayInterval: { seconds: 3 } };
  const sent = values.toFunctionMetadata({ name: 'f', bindings, retryOptions });
  const { functionMetadataResponse } = overTheWire({ functionMetadataResponse: { functionMetadataResults: [sent] } });
  const [got] = functionMetadataResponse.functionMetadataResults;
  assert.equal(got.functionId, 'f');
  assert.deepEqual([got.bindings.in.direction, got.bindings.in.dataType, got.bindings.out.direction], ['in', 'binary', 'out']);
  assert.deepEqual(got.rawBindings.map((text) => JSON.parse(text)), [{ ...bindings.in, name: 'in' }, { ...bindings.out, name: 'out' }]);
  assert.equal(got.retryOptions.maxRetryCount, -1);
  assert.equal(got.retryOptions.retryStrategy, 'fixed_delay');
});

test('RpcValues.UnknownNamesInARegistrationAreTold', () => {
  const with_ = (binding) => () => values.toFunctionMetadata({ name: 'f', bindings: { b: binding } });
  assert.throws(with_({ type: 't', direction: 'sideways' }), /function 'f', binding 'b': direction 'sideways' is not known/);
  assert.throws(with_({ type: 't', dataType: 'toString' }), /dataType 'toString' is not known/);
  const retryOptions = { retryStrategy: 'never' };
  assert.throws(() => values.toFunctionMetadata({ name: 'f', bindings: {}, retryOptions }), /retry strategy 'never' is not known/);
});

test('RpcValues.WholeNumbersBecomeNumbersWhereOneHoldsThem', () => {
  const inputs = [5, -5, '9007199254740993'].map((int) => ({ name: 'n', data: { int } }));
  const collection = { name: 'c', data: { collectionSint64: { sint64: [1, -2] } } };
  const { invocationRequest } = overTheWire({ invocationRequest: { inputData: [...inputs, collection] } });
  const [small, negative, large, list] = values.fromInvocationRequest(invocationRequest).inputData.map(({ data }) => data);
  assert.equal(small.int, 5);
  assert.equal(negative.int, -5);
  assert.equal(String(large.int), '9007199254740993');
  assert.deepEqual(list.collectionSint64.sint64, [1, -2]);
});

test('RpcValues.SharedMemoryIsRefused', () => {
  const request = overTheWire({ invocationRequest: { inputData: [{ name: 'm', rpcSharedMemory: { name: 'x' } }] } }).invocationRequest;
  assert.throws(() => values.fromInvocationRequest(request), /input 'm' is in shared memory/);
});

test('RpcValues.EverythingThrownHasAMessage', () => {
  const errors = [new Error(), new Error('e'), { message: 'm' }];
  for (const thrown of [undefined, null, 0, '', 'text', Symbol('s'), {}, [], Object.create(null), ...errors]) {
    const { message, stackTrace } = toRpcException(thrown);
    assert.equal(typeof message, 'string');
    assert.equal(typeof stackTrace, 'string');
    if (thrown !== '') assert.notEqual(message, '');
  }
});
